# egret_place_functions(TARGET): what usual requests run lies together in the program, in the order of functions.ld. README.md tells why.
#
# Only where gcc compiles a release of its own order: a build by a profile has a better one, and a sanitizer's or a counting one needs none.
include(CheckLinkerFlag)
unset(EGRET_LINKER_PLACES CACHE)  # asked anew: the linker, or the kind of build, may be another one now
set(EGRET_FUNCTIONS ${CMAKE_CURRENT_LIST_DIR}/functions.ld)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT EGRET_SANITIZE AND NOT EGRET_PROFILE AND NOT EGRET_COUNT_ACCESSES)
  check_linker_flag(CXX "LINKER:-T,${EGRET_FUNCTIONS}" EGRET_LINKER_PLACES)  # gold does not know INSERT
endif()

function(egret_place_functions target)
  if(EGRET_LINKER_PLACES)
    target_link_options(${target} PRIVATE "LINKER:-T,${EGRET_FUNCTIONS}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${EGRET_FUNCTIONS})
  endif()
endfunction()
