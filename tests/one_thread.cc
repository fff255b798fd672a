// Linked into each unit test that is not marked THREADS: ThreadSanitizer's preset leaves such tests out, so they must not start
// threads. Defines pthread_create for the whole process.
#include <cstdio>
#include <cstdlib>

#include <pthread.h>

extern "C" int pthread_create(pthread_t* /*thread*/, const pthread_attr_t* /*attributes*/, void* (* /*start*/)(void*),
                              void* /*argument*/) {
  std::fputs("this test starts a thread: mark it THREADS, see egret_test() in tests/CMakeLists.txt\n", stderr);
  std::abort();
}
