// One session: the memory of both its ends, each registered for what the peer may do with it and no more, and the
// reliable connection between them. Made before the threads start; afterwards each end belongs to one thread, the
// server's end to the partition that is its home.
#pragma once

#include <cstdint>

#include "slots.h"
#include "verbs.h"

namespace egret::handshakes {

// What the client WRITEs and a partition reads; what partitions write and the client READs.
struct ServerSide {
  ServerSide(const Device& device, const Layout& layout)
      : requests(layout.request_bytes()), responses(layout.response_bytes()), endpoint(device) {
    request_mr = endpoint.add_memory(requests, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    response_mr = endpoint.add_memory(responses, IBV_ACCESS_REMOTE_READ);
  }
  Buffer requests, responses;
  Endpoint endpoint;  // after the buffers: it is destroyed, drained, before they go
  ibv_mr* request_mr;
  ibv_mr* response_mr;
};

// Where requests are made, where READs land, and, apart from that, where delivers land.
struct ClientSide {
  ClientSide(const Device& device, const Layout& layout)
      : image(layout.request_bytes()),
        fetched(layout.lanes * kSlotBytes),
        replies(layout.response_bytes()),
        endpoint(device) {
    image_mr = endpoint.add_memory(image, 0);
    fetched_mr = endpoint.add_memory(fetched, IBV_ACCESS_LOCAL_WRITE);
    reply_mr = endpoint.add_memory(replies, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  }
  Buffer image, fetched, replies;
  Endpoint endpoint;
  ibv_mr* image_mr;
  ibv_mr* fetched_mr;
  ibv_mr* reply_mr;
};

struct Session {
  Session(const Device& device, uint32_t number, uint32_t home_partition, uint64_t session_nonce, const Layout& shape)
      : id(number),
        home(home_partition),
        nonce(session_nonce),
        layout(shape),
        server(device, shape),
        client(device, shape) {
    server.endpoint.connect(client.endpoint);
    client.endpoint.connect(server.endpoint);
  }
  Remote want_at(uint32_t lane) const { return remote(server.requests, server.request_mr, layout.want_offset(lane)); }
  Remote request_at(uint32_t slot) const {
    return remote(server.requests, server.request_mr, layout.request_offset(slot));
  }
  Remote response_at(uint32_t slot) const {
    return remote(server.responses, server.response_mr, layout.response_offset(slot));
  }
  Remote reply_at(uint32_t slot) const { return remote(client.replies, client.reply_mr, layout.response_offset(slot)); }

  const uint32_t id;
  const uint32_t home;  // the partition that alone polls and posts on server.endpoint
  const uint64_t nonce;
  const Layout layout;
  ServerSide server;
  ClientSide client;

 private:
  static Remote remote(const Buffer& buffer, const ibv_mr* mr, size_t offset) {
    return {reinterpret_cast<uint64_t>(buffer.at(offset)), mr->rkey};
  }
};

}  // namespace egret::handshakes
