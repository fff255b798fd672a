# What is installed besides the programs (whose own folders install them): configuration, units, the user, documents. A
# component is a Debian package: packages.cmake.

# The units name /usr/local/bin; installed, they name the prefix that the programs are under.
function(egret_install_unit component name)
  install(CODE "
    file(READ \"${CMAKE_SOURCE_DIR}/systemd/${name}\" unit)
    string(REPLACE /usr/local/bin/ \"\${CMAKE_INSTALL_PREFIX}/bin/\" unit \"\${unit}\")
    string(REPLACE /usr/share/doc/ \"\${CMAKE_INSTALL_PREFIX}/share/doc/\" unit \"\${unit}\")
    file(WRITE \"${CMAKE_BINARY_DIR}/systemd/${name}\" \"\${unit}\")" COMPONENT ${component})
  install(FILES ${CMAKE_BINARY_DIR}/systemd/${name} DESTINATION lib/systemd/system COMPONENT ${component})
endfunction()

# egret_install_package_documents(COMPONENT PACKAGE): what each package has below share/doc.
function(egret_install_package_documents component package)
  install(FILES ${documents}/changelog.gz conf/packaging/debian/copyright DESTINATION share/doc/${package} COMPONENT ${component})
  install(DIRECTORY ${documents}/doc/${package}/ DESTINATION share/doc/${package} COMPONENT ${component})
endfunction()

# egret_install_documents(COMPONENT program.section ...): what documents.py makes of each program, and the pages of docs/ (installed_docs.py).
function(egret_install_documents component)
  egret_install_package_documents(${component} egret-${component})
  foreach(page ${ARGN})
    string(REGEX MATCH "^([a-z-]+)[.]([0-9])$" _ ${page})
    set(program ${CMAKE_MATCH_1})
    install(FILES ${documents}/${page}.gz DESTINATION share/man/man${CMAKE_MATCH_2} COMPONENT ${component})
    install(FILES ${documents}/${program}.bash DESTINATION share/bash-completion/completions RENAME ${program} COMPONENT ${component})
  endforeach()
endfunction()

# Made of the programs that were built, when they are installed.
set(documents ${CMAKE_BINARY_DIR}/documents)
foreach(component proxy backend tools library dev)
  install(CODE "execute_process(COMMAND python3 \"${CMAKE_SOURCE_DIR}/conf/packaging/documents.py\" \"${CMAKE_BINARY_DIR}\"
                                \"${documents}\" \"${EGRET_MAINTAINER}\" \"\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)
                execute_process(COMMAND python3 \"${CMAKE_SOURCE_DIR}/conf/packaging/installed_docs.py\" \"${documents}/doc\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
endforeach()

# egret_install_configuration(COMPONENT file folder name): a file that is there already is the operator's, and stays.
function(egret_install_configuration component file folder name)
  install(CODE "
    if(EXISTS \"\$ENV{DESTDIR}${folder}/${name}\")
      message(STATUS \"Kept: \$ENV{DESTDIR}${folder}/${name}\")
    else()
      file(INSTALL DESTINATION \"${folder}\" TYPE FILE RENAME \"${name}\" FILES \"${CMAKE_SOURCE_DIR}/${file}\")
    endif()" COMPONENT ${component})
endfunction()

foreach(daemon backend proxy)
  egret_install_configuration(${daemon} conf/egret-${daemon}.yaml /etc/egret egret-${daemon}.yaml)
  egret_install_unit(${daemon} egret-${daemon}.service)
  install(FILES ${documents}/egret-${daemon}.catalog DESTINATION lib/systemd/catalog COMPONENT ${daemon})
  install(FILES systemd/egret.sysusers DESTINATION lib/sysusers.d RENAME egret-${daemon}.conf COMPONENT ${daemon})
  install(FILES systemd/egret.tmpfiles DESTINATION lib/tmpfiles.d RENAME egret-${daemon}.conf COMPONENT ${daemon})
  install(FILES systemd/placement.conf DESTINATION share/doc/egret-${daemon} COMPONENT ${daemon})
endforeach()
egret_install_unit(proxy egret-proxy.socket)
egret_install_unit(proxy egret-memcached.service)
egret_install_configuration(proxy conf/egret-memcached.default /etc/default egret-memcached)
egret_install_documents(backend egret-backend.8)
egret_install_documents(proxy egret-proxy.8 egret-memcached.1)
egret_install_documents(tools egret-bench.1 egret-top.1 egret-run.1)
install(TARGETS egret-preload LIBRARY DESTINATION ${EGRET_PRELOAD_FOLDER} COMPONENT tools)
install(PROGRAMS ${CMAKE_BINARY_DIR}/egret-run DESTINATION bin COMPONENT tools)

# All that is installed, and what its documents are made of: what a build compiles that runs no tests.
add_custom_target(shipped)
add_dependencies(shipped egret-backend egret-proxy egret-memcached egret-bench egret-top egret egret-preload egret-client-options)

# libegret: the library, and what programs are built with.
include(CMakePackageConfigHelpers)
set(libraries lib)
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(libraries lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
install(TARGETS egret EXPORT egret-config LIBRARY DESTINATION ${libraries} COMPONENT library NAMELINK_COMPONENT dev INCLUDES DESTINATION include)
install(FILES client/egret.h client/egret.hpp DESTINATION include COMPONENT dev)
install(EXPORT egret-config NAMESPACE egret:: DESTINATION ${libraries}/cmake/egret COMPONENT dev)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/egret-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/egret-config-version.cmake DESTINATION ${libraries}/cmake/egret COMPONENT dev)
file(RELATIVE_PATH EGRET_UP_TO_PREFIX /${libraries}/pkgconfig /)
string(REGEX REPLACE "/$" "" EGRET_UP_TO_PREFIX "${EGRET_UP_TO_PREFIX}")
configure_file(conf/packaging/egret.pc.in ${CMAKE_BINARY_DIR}/egret.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/egret.pc DESTINATION ${libraries}/pkgconfig COMPONENT dev)
install(FILES ${documents}/egret.3.gz DESTINATION share/man/man3 COMPONENT dev)
install(DIRECTORY ${documents}/man3/ DESTINATION share/man/man3 COMPONENT dev)  # a page for each function, which names that one
egret_install_package_documents(library libegret0)
egret_install_package_documents(dev libegret-dev)
