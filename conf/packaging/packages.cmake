# The Debian packages, by CPack: `make deb`. One for each component of install.cmake:
#
#   proxy ─▶ egret-proxy (with egret-memcached)   backend ─▶ egret-backend   tools ─▶ egret-tools
#   library ─▶ libegret0   dev ─▶ libegret-dev
#
# Dependencies on libraries come from dpkg-shlibdeps, maintainer scripts from debian/*.in.
set(EGRET_MAINTAINER "Egret maintainers <egret@packages.egret.dev>" CACHE STRING "Who the Debian packages name as maintainer")

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL proxy backend tools library dev)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CONTACT "${EGRET_MAINTAINER}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# egret_package(COMPONENT SUMMARY TEXT [NAME name] [STARTED units ...] [UNITS units ...] [CONFFILES files ...]): STARTED are enabled and
# started, UNITS are there besides. NAME: of the package, else egret-COMPONENT.
function(egret_package component summary text)
  cmake_parse_arguments(P "" "NAME" "STARTED;UNITS;CONFFILES" ${ARGN})
  string(TOUPPER ${component} upper)
  set(PACKAGE egret-${component})
  if(P_NAME)
    set(PACKAGE ${P_NAME})
  endif()
  set(scripts ${CMAKE_BINARY_DIR}/debian/${component})
  set(extra "")
  if(P_STARTED)
    list(JOIN P_STARTED " " STARTED)
    list(JOIN P_UNITS " " UNITS)
    string(STRIP "${STARTED} ${UNITS}" UNITS)
    foreach(script postinst prerm postrm)
      configure_file(${CMAKE_SOURCE_DIR}/conf/packaging/debian/${script}.in ${scripts}/${script} @ONLY FILE_PERMISSIONS
                     OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
      list(APPEND extra ${scripts}/${script})
    endforeach()
  endif()
  if(P_CONFFILES)
    list(JOIN P_CONFFILES "\n" lines)
    file(WRITE ${scripts}/conffiles "${lines}\n")
    list(APPEND extra ${scripts}/conffiles)
  endif()
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${PACKAGE} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${extra}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
endfunction()

egret_package(proxy "memcached over RDMA remote fetching: what clients talk to"
  "Applications keep their memcached clients and point them at egret-proxy on\ntheir own host, which turns requests into remote-fetch messages to\negret-backend, through shared memory or RDMA.\negret-memcached takes memcached's own flags and runs in its place."
  STARTED egret-proxy.socket egret-proxy.service
  UNITS egret-memcached.service
  CONFFILES /etc/egret/egret-proxy.yaml /etc/default/egret-memcached)
set(CPACK_DEBIAN_PROXY_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers, init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_PROXY_PACKAGE_RECOMMENDS "egret-backend, ibverbs-providers")

egret_package(backend "memcached over RDMA remote fetching: the store"
  "The partitioned store behind egret-proxy. Executes what arrives in\nslots of its memory and leaves the results there to be fetched, through shared\nmemory or RDMA; posts nothing on the data path."
  STARTED egret-backend.service
  CONFFILES /etc/egret/egret-backend.yaml)
set(CPACK_DEBIAN_BACKEND_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers, init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_BACKEND_PACKAGE_RECOMMENDS "ibverbs-providers")

egret_package(tools "memcached over RDMA remote fetching: tools"
  "egret-top shows in a terminal what the daemons do, from their metrics.\negret-bench loads servers that speak memcached's protocol, checks every\nanswer and says what each op cost; it measures RDMA devices, and tells from it\nhow to tune Egret.\negret-run runs programs of memcached clients in C (PHP, pylibmc, Perl) so\nthat slots serve their connections to an egret-proxy on the same host.")

egret_package(library "memcached over RDMA remote fetching: client library"
  "A program that links libegret puts its requests into the slots of\negret-backend itself and fetches the results, without a proxy or a socket on\nthe way. It loads libibverbs and librdmacm only for backends over RDMA, and\nlibcrypto only where there is a secret."
  NAME libegret0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_SOURCE_DIR}/conf/packaging/debian/triggers")
install(FILES conf/packaging/debian/libegret0.lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
  RENAME libegret0 COMPONENT library)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "egret-backend")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "libssl3, librdmacm1, ibverbs-providers")

egret_package(dev "memcached over RDMA remote fetching: client library, for development"
  "Headers in C and C++20, the link to the library, pkg-config and CMake files,\nexamples, and the man page egret(3)."
  NAME libegret-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libegret0 (= ${PROJECT_VERSION})")

include(CPack)
