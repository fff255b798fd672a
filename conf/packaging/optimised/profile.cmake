# What EGRET_PROFILE adds to every target of the project (the root's CMakeLists.txt). README.md says what it is for.
#
#   gather   programs count what runs, and add it to build/.../SOURCE.cc.gcda when they end
#   use      code is placed, inlined and unrolled by these counts, and across sources
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "EGRET_PROFILE is for gcc, not for ${CMAKE_CXX_COMPILER_ID}")
endif()

if(EGRET_PROFILE STREQUAL "gather")
  target_compile_options(egret_compiler INTERFACE -fprofile-generate -fprofile-update=prefer-atomic)  # threads count together
  target_link_options(egret_compiler INTERFACE -fprofile-generate)
elseif(EGRET_PROFILE STREQUAL "use")
  foreach(part backend proxy protocol/rpc tools/memcached)  # each of which a training that went well has run
    file(GLOB_RECURSE counts LIST_DIRECTORIES false ${CMAKE_BINARY_DIR}/${part}/*.gcda)
    if(NOT counts)
      message(FATAL_ERROR "${CMAKE_BINARY_DIR}/${part} has no counts of a training: conf/packaging/optimised/build.sh gathers them")
    endif()
  endforeach()
  # What no load of the training reached is compiled as in a release, not for size. Threads may lose counts of each
  # other: gcc corrects sums that do not agree.
  target_compile_options(egret_compiler INTERFACE -fprofile-use -fprofile-partial-training -fprofile-correction -Wno-missing-profile)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
  # So much is inlined that gcc warns of what cannot be, as in std::string's own short text. A release has all warnings as errors.
  target_compile_options(egret_compiler INTERFACE -Wno-error -Wno-stringop-overflow -Wno-stringop-overread)
  target_link_options(egret_compiler INTERFACE -Wno-stringop-overflow -Wno-stringop-overread)
else()
  message(FATAL_ERROR "EGRET_PROFILE is gather or use, not ${EGRET_PROFILE}")
endif()
