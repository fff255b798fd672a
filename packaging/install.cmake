# What is installed besides the programs (whose own folders install them): configuration, units, the user. A component
# is a Debian package: packages.cmake.

# The units name /usr/local/bin; installed, they name the prefix that the programs are under.
function(egret_install_unit component name)
  install(CODE "
    file(READ \"${CMAKE_SOURCE_DIR}/systemd/${name}\" unit)
    string(REPLACE /usr/local/bin/ \"\${CMAKE_INSTALL_PREFIX}/bin/\" unit \"\${unit}\")
    file(WRITE \"${CMAKE_BINARY_DIR}/systemd/${name}\" \"\${unit}\")" COMPONENT ${component})
  install(FILES ${CMAKE_BINARY_DIR}/systemd/${name} DESTINATION lib/systemd/system COMPONENT ${component})
endfunction()

foreach(daemon backend proxy)
  install(FILES conf/egret-${daemon}.yaml DESTINATION /etc/egret COMPONENT ${daemon})
  egret_install_unit(${daemon} egret-${daemon}.service)
  install(FILES systemd/egret.sysusers DESTINATION lib/sysusers.d RENAME egret-${daemon}.conf COMPONENT ${daemon})
  install(FILES README.md systemd/placement.conf DESTINATION share/doc/egret-${daemon} COMPONENT ${daemon})
endforeach()
egret_install_unit(proxy egret-memcached.service)
