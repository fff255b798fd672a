// The token that a connecting host must give: whoever has it may READ and WRITE the memory of the runs.
#pragma once

#include <string>
#include <string_view>

namespace egret::bench_paradigms {

// 128 bits of the kernel's, as 32 hexadecimal digits.
std::string make_token();
// Takes as long for every token of the right size.
bool is_same_token(std::string_view given, std::string_view own);

}  // namespace egret::bench_paradigms
