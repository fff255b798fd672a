#!/usr/bin/env python3
"""embed.py FOLDER OUT.cc: the status page as one document, and the policy under which a browser runs it, as C++ constants.

    page.html, its @file@ marks replaced by the files ─▶ the document ─▶ SHA-256 of its <style> and <script> ─▶ the policy
"""
import base64, hashlib, pathlib, re, sys

folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def file_text(mark):
    text = (folder / mark[1]).read_text().rstrip("\n")
    assert not re.search(r"</(script|style)", text), f"{mark[1]} would end its element"
    return text


page = re.sub(r"@([a-z]+\.(?:css|json|js))@", file_text, (folder / "page.html").read_text())


def hashes(tag):
    return " ".join("'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
                    for text in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S))


policy = "; ".join([
    "default-src 'none'", f"script-src {hashes('script')}", f"style-src {hashes('style')}", "connect-src 'self'", "img-src data:",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])


def bytes_of(text):
    numbers = [str(byte) for byte in text.encode()]
    lines = [", ".join(numbers[at:at + 24]) for at in range(0, len(numbers), 24)]
    return ",\n    ".join(lines)


def constant(name, text):
    return f"constexpr unsigned char {name}[] = {{\n    {bytes_of(text)}}};\n"


out.write_text(f"""// Made by protocol/page/embed.py.
#include "page/page.h"

namespace egret::page {{
namespace {{
{constant("kPage", page)}{constant("kPolicy", policy)}
template <size_t N>
std::string_view view(const unsigned char (&bytes)[N]) {{
  return {{reinterpret_cast<const char*>(bytes), N}};
}}
}}  // namespace

std::string_view status_page() {{
  return view(kPage);
}}

std::string_view content_security_policy() {{
  return view(kPolicy);
}}

}}  // namespace egret::page
""")
