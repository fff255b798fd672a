// doctest's own code and main(), compiled once for all test executables: it takes longer than most of the tests.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
