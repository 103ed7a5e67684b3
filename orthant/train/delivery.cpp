#include "orthant/train/delivery.hpp"

#include "orthant/comm/typed.hpp"

namespace orthant::train {

using data::sets::Held;
using tensor::Box;

Held Delivery::room_for(const Box& part) {
  rooms_.emplace_back(static_cast<std::size_t>(data::sets::box_bytes(part)));
  return {rooms_.back(), part};
}

void Delivery::add_send(int peer, const Held& from, const Box& part) {
  if (data::sets::is_contiguous(from.box, part)) {
    sends_.push_back(comm::message(peer, data::sets::bytes_of(from, part), tag_));
    return;
  }
  const Held room = room_for(part);
  before_.push_back({from, room, part});
  sends_.push_back(comm::message(peer, room.bytes, tag_));
}

void Delivery::add_receive(int peer, const Held& to, const Box& part) {
  if (data::sets::is_contiguous(to.box, part)) {
    receives_.push_back(comm::message(peer, data::sets::bytes_of(to, part), tag_));
    return;
  }
  const Held room = room_for(part);
  after_.push_back({room, to, part});
  receives_.push_back(comm::message(peer, room.bytes, tag_));
}

void Delivery::add_copy(const Held& from, const Held& to, const Box& part) { after_.push_back({from, to, part}); }

void Delivery::start() {
  for (const Copy& copy : before_) data::sets::copy_part(copy.from, copy.to, copy.part);
  if (sends_.empty() && receives_.empty()) return;
  transfer_ = comm_.bind(sends_, receives_, "store");
  transfer_->start();
}

void Delivery::wait() {
  if (transfer_) transfer_->wait();
  for (const Copy& copy : after_) data::sets::copy_part(copy.from, copy.to, copy.part);
  drop();
}

void Delivery::drop() {
  if (transfer_) transfer_->wait();
  transfer_.reset();
  sends_.clear();
  receives_.clear();
  before_.clear();
  after_.clear();
  rooms_.clear();
}

}  // namespace orthant::train
