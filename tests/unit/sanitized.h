// kSanitized: this build carries a sanitizer's shadow and allocator, so what the process holds in memory, and what the
// kernel refuses it, says little about the program under test.
#pragma once

namespace egret {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace egret
