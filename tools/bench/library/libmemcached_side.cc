// libmemcached is loaded when it is asked for: nothing needs it to be built, and the ABI of its .so.11 is fixed.
#include <charconv>
#include <cstdlib>
#include <utility>

#include <dlfcn.h>
#include <netinet/in.h>

#include "bench/client/address.h"
#include "bench_library/side.h"

namespace egret::bench_library {

namespace {

using base::Status;

constexpr const char* kLibrary = "libmemcached.so.11";
constexpr int kSuccess = 0;

// Its functions of these names, after "memcached_". A client is a memcached_st, an answer a memcached_result_st.
struct Libmemcached {
  void* (*create)(void* memory) = nullptr;
  void (*free)(void* client) = nullptr;
  int (*server_add)(void* client, const char* host, in_port_t port) = nullptr;
  int (*server_add_unix_socket)(void* client, const char* path) = nullptr;
  int (*set)(void* client, const char* key, size_t key_length, const char* value, size_t value_length, time_t expires,
             uint32_t flags) = nullptr;
  char* (*get)(void* client, const char* key, size_t key_length, size_t* value_length, uint32_t* flags,
               int* code) = nullptr;
  int (*mget)(void* client, const char* const* keys, const size_t* key_lengths, size_t keys_count) = nullptr;
  void* (*fetch_result)(void* client, void* result, int* code) = nullptr;
  void* (*result_create)(void* client, void* memory) = nullptr;
  const char* (*result_value)(const void* result) = nullptr;
  size_t (*result_length)(const void* result) = nullptr;
  const char* (*strerror)(void* client, int code) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

base::Expected<Libmemcached> load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);  // it stays
  if (library == nullptr) return Status::error(std::string(kLibrary) + " is not installed");
  Libmemcached all;
  const bool is_whole =
      find(library, "memcached_create", all.create) && find(library, "memcached_free", all.free) &&
      find(library, "memcached_server_add", all.server_add) &&
      find(library, "memcached_server_add_unix_socket", all.server_add_unix_socket) &&
      find(library, "memcached_set", all.set) && find(library, "memcached_get", all.get) &&
      find(library, "memcached_mget", all.mget) && find(library, "memcached_fetch_result", all.fetch_result) &&
      find(library, "memcached_result_create", all.result_create) &&
      find(library, "memcached_result_value", all.result_value) &&
      find(library, "memcached_result_length", all.result_length) && find(library, "memcached_strerror", all.strerror);
  if (!is_whole) return Status::error(std::string(kLibrary) + " lacks a function");
  return all;
}

class LibmemcachedSide final : public Side {
 public:
  LibmemcachedSide(const Libmemcached& library, std::string address)
      : library_(library),
        address_(std::move(address)),
        name_("libmemcached, " + address_),
        client_(library_.create(nullptr)) {}
  ~LibmemcachedSide() override { library_.free(client_); }
  LibmemcachedSide(const LibmemcachedSide&) = delete;
  LibmemcachedSide& operator=(const LibmemcachedSide&) = delete;

  Status connect_to(const bench::Address& address) {
    in_port_t port = 0;
    const char* const end = address.port.data() + address.port.size();
    const bool is_number = std::from_chars(address.port.data(), end, port).ptr == end && port != 0;
    if (address.path.empty() && !is_number) return Status::error(name_ + ": the port is no number");
    const int code = address.path.empty() ? library_.server_add(client_, address.host.c_str(), port)
                                          : library_.server_add_unix_socket(client_, address.path.c_str());
    return code == kSuccess ? Status::ok() : failed("server", code);
  }

  const std::string& name() const override { return name_; }
  base::Expected<std::unique_ptr<Side>> another() const override { return libmemcached_side(address_); }

  Status set(const std::string& key, const std::string& value) override {
    const int code = library_.set(client_, key.data(), key.size(), value.data(), value.size(), 0, 0);
    return code == kSuccess ? Status::ok() : failed("set", code);
  }

  Status get(const std::string& key, const std::string& value) override {
    size_t length = 0;
    uint32_t flags = 0;
    int code = kSuccess;
    const std::unique_ptr<char, decltype(&std::free)> got(
        library_.get(client_, key.data(), key.size(), &length, &flags, &code), std::free);
    if (code != kSuccess) return failed("get", code);
    return std::string_view(got.get(), length) == value ? Status::ok() : wrong();
  }

  Status multiget(const std::vector<std::string>& keys, const std::vector<std::string>& values) override {
    pointers_.clear();
    lengths_.clear();
    for (const std::string& key : keys) {
      pointers_.push_back(key.data());
      lengths_.push_back(key.size());
    }
    int code = library_.mget(client_, pointers_.data(), lengths_.data(), keys.size());
    if (code != kSuccess) return failed("mget", code);
    void* const result =
        library_.result_create(client_, nullptr);  // holds one answer after another; freed with the last
    size_t got = 0;
    Status status = Status::ok();
    for (; library_.fetch_result(client_, result, &code) != nullptr; ++got) {
      const std::string_view value(library_.result_value(result), library_.result_length(result));
      if (got == values.size() || value != values[got]) status = wrong();
    }
    return got == values.size() ? status : failed("mget", code);
  }

  // It has one call under way at most.
  Status pipelined(const std::vector<std::string>& keys, const std::vector<std::string>& values) override {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (Status got = get(keys[i], values[i]); !got) return got;
    }
    return Status::ok();
  }

 private:
  Status failed(const char* what, int code) const {
    return Status::error(name_ + ": " + what + ": " + library_.strerror(client_, code));
  }
  Status wrong() const { return Status::error(name_ + ": a get brought something else than was set"); }

  const Libmemcached& library_;
  const std::string address_;
  const std::string name_;
  void* const client_;
  std::vector<const char*> pointers_;
  std::vector<size_t> lengths_;
};

const base::Expected<Libmemcached>& loaded() {
  static const base::Expected<Libmemcached> library = load();
  return library;
}

}  // namespace

Status has_libmemcached() {
  return loaded().status();
}

base::Expected<std::unique_ptr<Side>> libmemcached_side(const std::string& address) {
  if (!loaded()) return loaded().status();
  const auto parsed = bench::parse_address(address);
  if (!parsed) return parsed.status();
  auto side = std::make_unique<LibmemcachedSide>(loaded().value(), address);
  if (Status added = side->connect_to(parsed.value()); !added) return added;
  return std::unique_ptr<Side>(std::move(side));
}

}  // namespace egret::bench_library
