// Reports that are made page by page, read to their end.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/report/paged_report.h"

namespace egret::proxy {

inline std::vector<std::string> pages_of(std::unique_ptr<PagedReport> report) {
  std::vector<std::string> pages;
  for (bool more = true; more;) {
    std::string page;
    more = report->next(page);
    pages.push_back(std::move(page));
  }
  return pages;
}

inline std::string whole(std::unique_ptr<PagedReport> report) {
  std::string text;
  for (const std::string& page : pages_of(std::move(report))) text += page;
  return text;
}

}  // namespace egret::proxy
