// What clang-tidy has to complain of: a line or two for each check of `tidy.py --quick`. `tidy.py --prove` wants the same
// complaints of this source alone and in a unit. It is compiled into nothing.
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <pthread.h>

namespace sample {
void take(bool first, int second);
void call() {
  take(/*second=*/true, 1);
}
void kill(pthread_t thread) {
  pthread_kill(thread, SIGTERM);
}
int pointer(bool* flag) {
  if (flag) {
    return 1;
  }
  if (flag != nullptr && *flag) return 2;
  return 0;
}
int convert(bool* flag) {
  if (flag) {
  }
  return 0;
}
int branch(int x) {
  if (x == 1) {
    return 5;
  } else {
    return 5;
  }
}
class Copied : public std::enable_shared_from_this<Copied> {
 public:
  Copied() = default;
  Copied(const Copied& other) : value(other.value) {}
  int value = 0;
};
void escape() noexcept {
  throw std::runtime_error("x");
}
float fold(const std::vector<float>& v) {
  return std::accumulate(v.begin(), v.end(), 0);
}
struct Forward {
  template <typename T>
  Forward(T&& t) : x(t) {}
  int x;
};
void inaccurate(std::vector<int>& v) {
  v.erase(std::remove(v.begin(), v.end(), 1));
}
int rounding(double d) {
  return static_cast<int>(d + 0.5);
}
double division(int a, int b) {
  double d = a / b;
  return d;
}
void lambda_name() {
  auto f = [] { std::printf("%s", __func__); };
  f();
}
#define TWICE(x) x * 2
int macro(int i) {
  return TWICE(i);
}
#define REPEAT(x) ((x) + (x))
int repeated(int i) {
  return REPEAT(++i);
}
char* misplaced(const char* s) {
  return static_cast<char*>(std::malloc(std::strlen(s + 1)));
}
char* misplaced2(int n) {
  return static_cast<char*>(std::malloc(n)) + 1;
}
template <typename T>
void forwarding(T&& t) {
  auto u = std::move(t);
  (void)u;
}
struct A {
  virtual void f() {}
  virtual ~A() = default;
};
struct B : A {
  void f() override {}
};
struct C : B {
  void f() override { A::f(); }
};
int posix() {
  if (posix_fadvise(0, 0, 0, POSIX_FADV_NORMAL) < 0) return 1;
  return 0;
}
int redundant(bool a) {
  if (a) {
    if (a) return 2;
  }
  return 1;
}
int signed_char(signed char c) {
  int i = c;
  return i;
}
int container_size() {
  std::vector<int> v;
  return sizeof(v);
}
bool wake(std::condition_variable& c, std::mutex& m, bool& done) {
  std::unique_lock<std::mutex> l(m);
  if (!done) {
    c.wait(l);
  }
  return done;
}
std::string construct() {
  return std::string('x', 5);
}
void assign(std::string& s) {
  s = 7;
  s += 300;
}
std::string nul() {
  std::string s("a\0b");
  return s;
}
int swapped(int a, double b) {
  extern int g(double, int);
  return g(a, b);
}
void terminating(int i) {
  do {
    if (i > 3) continue;
    ++i;
  } while (false);
}
void missing() {
  std::runtime_error("not thrown");
}
int small_loop(long n) {
  int sum = 0;
  for (short i = 0; i < n; ++i) sum += i;
  return sum;
}
struct NonTrivial {
  std::string s;
};
void undefined_memory(NonTrivial* n) {
  std::memset(n, 0, sizeof(*n));
}
struct Undelegated {
  Undelegated();
  explicit Undelegated(int) { Undelegated(); }
  int x;
};
void at_new() noexcept {
  int* p = new int(1);
  delete p;
}
struct Self {
  Self& operator=(const Self& o) {
    delete p;
    p = new int(*o.p);
    return *this;
  }
  int* p;
};
void unused_return(std::vector<int>& v) {
  std::remove(v.begin(), v.end(), 1);
  std::unique_ptr<int> u;
  u.release();
}
int use_after(std::string s) {
  std::string t = std::move(s);
  return static_cast<int>(s.size() + t.size());
}
struct Near {
  virtual void function() {}
  virtual ~Near() = default;
};
struct Near2 : Near {
  void funktion() {}
};
int uninitialised() {
  int x;
  x = 3;
  return x;
}
struct Explicit {
  Explicit(int i) : x(i) {}
  int x;
};
static int unused(int a, int b) {
  return a;
}
int use_unused() {
  return unused(1, 2);
}
int* null() {
  return 0;
}
struct Override : A {
  virtual void f() {}
};
size_t find(const std::string& s) {
  return s.find("x");
}
int copy_range(const std::vector<std::string>& v) {
  size_t n = 0;
  for (std::string s : v) n += s.size();
  return static_cast<int>(n);
}
struct View {
  View(const std::string& s) : t(s) {}
  std::string t;
};
int conversion(const std::vector<std::string>& v) {
  size_t n = 0;
  for (const View& s : v) n += s.t.size();
  return static_cast<int>(n);
}
bool inefficient(const std::set<int>& s) {
  return std::find(s.begin(), s.end(), 3) != s.end();
}
std::string concat(const std::string& a) {
  std::string f;
  for (int i = 0; i < 9; ++i) f = f + a;
  return f;
}
void inefficient_vector(std::vector<int>& o) {
  std::vector<int> v;
  for (int i = 0; i < 100; ++i) v.push_back(i);
  o.swap(v);
}
int move_const(int i) {
  return std::move(i);
}
struct M {
  M(M&& o) : s(o.s) {}
  std::string s;
};
std::string no_move(std::string x) {
  const std::string s = x + "a";
  return s;
}
void* to_ptr(unsigned long i) {
  return reinterpret_cast<void*>(i);
}
struct NoNoexcept {
  NoNoexcept(NoNoexcept&&) {}
};
struct Trivial {
  ~Trivial();
  int x;
};
Trivial::~Trivial() = default;
struct Big {
  std::string a;
  const std::string& get() const { return a; }
};
size_t unnecessary(const Big& b) {
  const std::string c = b.get();
  return c.size();
}
size_t value_param(const Big b) {
  return b.a.size();
}
int BadName(int i) {
  return i;
}
const int bad_constant = 3;
class lower_class {
  int member;
};
void handler(int) {
  std::printf("x");
}
void install() {
  std::signal(SIGINT, handler);
}
void many(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)i;
}
}  // namespace sample
