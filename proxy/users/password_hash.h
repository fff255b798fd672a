// Hashes of passwords, as crypt(3) makes and checks them: yescrypt ("$y$"), SHA-512 ("$6$") and what else libcrypt
// calls sound. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace egret::proxy {

// Whether it is a hash that libcrypt can check, by a method that it does not call outdated. Says why not, or nothing.
std::string hash_fault(const std::string& hash);
// Takes as long as the hash's method wants it to: tens of milliseconds and megabytes. Not for a worker's thread.
bool is_password_of(std::string_view password, const std::string& hash);

}  // namespace egret::proxy
