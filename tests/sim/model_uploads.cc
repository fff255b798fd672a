#include "model_uploads.h"

namespace egret::sim {

std::string ModelUploads::take_part(const op::Op& op, uint64_t session_id, uint32_t lane, std::string_view whole) {
  const auto [at, is_first] = open_.try_emplace(Key{session_id, lane, op.upload_id}, Upload{std::string(op.key)});
  Upload& upload = at->second;
  if (upload.key != op.key) return "has the number of another upload that is open";
  if (is_first && op.offset != 0) return "begins in the middle";
  if (op.length != whole.size()) return "is said to have another length";
  if (op.offset != upload.bytes) {
    return "goes on at byte " + std::to_string(op.offset) + " of its value, and not at " + std::to_string(upload.bytes);
  }
  if (op.value.empty() || op.value != whole.substr(op.offset, op.value.size())) return "arrives with other bytes";
  upload.bytes += op.value.size();
  ++parts_;
  return {};
}

std::string ModelUploads::take_commit(const op::Op& op, uint64_t session_id, uint32_t lane, std::string_view whole) {
  const auto at = open_.find(Key{session_id, lane, op.upload_id});
  if (at == open_.end() || at->second.key != op.key) return "is committed without its parts";
  if (at->second.bytes != whole.size()) return "is committed before its last part";
  open_.erase(at);
  ++committed_;
  return {};
}

void ModelUploads::abort(const op::Op& op, uint64_t session_id, uint32_t lane) {
  open_.erase(Key{session_id, lane, op.upload_id});
}

void ModelUploads::drop_lane(uint64_t session_id, uint32_t lane) {
  std::erase_if(open_, [&](const auto& each) {
    return std::get<0>(each.first) == session_id && std::get<1>(each.first) == lane;
  });
}

}  // namespace egret::sim
