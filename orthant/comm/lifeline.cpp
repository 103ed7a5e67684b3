#include "orthant/comm/lifeline.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/random.hpp"
#include "orthant/comm/machine.hpp"
#include "orthant/comm/sockets.hpp"
#include "orthant/comm/typed.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

/// What every rank tells the others: its machine, and where the first rank of the machine listens.
struct Contact {
  int leader = 0;
  pid_t pid = 0;
  std::uint64_t token = 0;  ///< a connection that does not begin with it is none of ours
  Addresses addresses{};
  std::array<char, 64> host{};
};

Contact contact_of(int leader, const Listener& listener) {
  Contact contact{.leader = leader, .pid = getpid(), .addresses = listener.addresses()};
  const std::string host = host_name();
  std::copy_n(host.begin(), std::min(host.size(), contact.host.size() - 1), contact.host.begin());
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  contact.token = base::keyed(now, static_cast<std::uint64_t>(getpid()));
  return contact;
}

std::string name_of(const std::vector<Contact>& contacts, int leader) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < contacts.size(); ++rank)
    if (contacts[rank].leader == leader) ranks.push_back(static_cast<int>(rank));
  const std::size_t shown = std::min<std::size_t>(ranks.size(), 8);
  return fmt::format("host '{}' (rank{} {}{})", contacts[static_cast<std::size_t>(leader)].host.data(),
                     ranks.size() > 1 ? "s" : "", fmt::join(ranks.begin(), ranks.begin() + shown, ", "),
                     shown < ranks.size() ? ", ..." : "");
}

/// A file of another process of this machine; -1 if the system does not give it away.
int copy_of(pid_t pid, int file) {
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return -1;
  const auto copy = static_cast<int>(syscall(SYS_pidfd_getfd, process, file, 0));
  close(process);
  return copy;
}

}  // namespace

Lifeline::Lifeline(Comm& comm) {
  const std::vector<int> here = ranks_of_machine(comm);
  if (static_cast<int>(here.size()) == comm.size()) return;
  const bool leads = here.front() == comm.rank();
  Listener listener(leads);
  const std::vector<Contact> contacts = all_gather(comm, contact_of(here.front(), listener));
  std::set<int> leaders;
  for (const Contact& contact : contacts) leaders.insert(contact.leader);
  const auto mine = leaders.find(here.front());
  const int previous = mine == leaders.begin() ? *leaders.rbegin() : *std::prev(mine);
  const int next = std::next(mine) == leaders.end() ? *leaders.begin() : *std::next(mine);
  const auto contact = [&](int rank) -> const Contact& { return contacts[static_cast<std::size_t>(rank)]; };

  // A connection counts when the other side has accepted it and said so.
  std::vector<int> tries;
  if (leads) tries = connect_to(contact(next).addresses, contact(next).token);
  const std::vector<int> has_tried = all_gather(comm, tries.empty() ? 0 : 1);
  if (leads && has_tried[static_cast<std::size_t>(previous)] != 0)
    peers_[0].file = listener.accept(contact(comm.rank()).token);
  if (leads) peers_[1].file = first_accepted(tries);
  // Where processes may not be looked into, those of this machine may do it for a moment.
  if (leads) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  const auto files = all_gather(comm, std::array<int, 2>{peers_[0].file, peers_[1].file});
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].name = name_of(contacts, i == 0 ? previous : next);
    const int file = files[static_cast<std::size_t>(here.front())][i];
    if (!leads && file >= 0) peers_[i].file = copy_of(contact(here.front()).pid, file);
    peers_[i].is_watched = leads && file >= 0;
    if (peers_[i].is_watched) keep_alive(file, link_timeout());
  }
  comm.barrier();
  if (leads) prctl(PR_SET_PTRACER, 0);
}

Lifeline::~Lifeline() {
  for (const Peer& peer : peers_)
    if (peer.file >= 0) close(peer.file);
}

std::array<int, 2> Lifeline::files() const {
  const auto file = [](const Peer& peer) { return peer.is_watched ? peer.file : -1; };
  return {file(peers_[0]), file(peers_[1])};
}

std::string Lifeline::loss(int file) {
  const auto peer = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& one) { return one.file == file; });
  char sent = 0;
  const ssize_t count = ::recv(file, &sent, 1, MSG_DONTWAIT);
  const int error = errno;
  if (count < 0 && (error == EAGAIN || error == EINTR)) return "";
  peer->is_watched = false;
  if (count > 0) return "";
  if (count == 0 || error == ECONNRESET || error == EPIPE)
    return fmt::format("{} is lost: all its processes ended without a message", peer->name);
  return fmt::format(
      "{} is lost: no answer for {} s; check the machine and its network, or set ORTHANT_LINK_SECONDS to more",
      peer->name, link_timeout().count());
}

void Lifeline::take_leave() const noexcept {
  const char leave = 1;
  for (const Peer& peer : peers_)
    if (peer.file >= 0) (void)!::send(peer.file, &leave, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::chrono::seconds link_timeout() {
  const char* text = std::getenv("ORTHANT_LINK_SECONDS");
  if (text == nullptr || *text == '\0') return std::chrono::seconds(10);
  char* end = nullptr;
  const long seconds = std::strtol(text, &end, 10);
  if (*end != '\0' || seconds < 4 || seconds > 30'000)
    fail(Exit::usage, "ORTHANT_LINK_SECONDS is '{}'; use a whole number of seconds from 4 to 30000, e.g. 10", text);
  return std::chrono::seconds(seconds);
}

}  // namespace orthant::comm
