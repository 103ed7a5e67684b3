#include "orthant/kernels/conv.hpp"

#include "orthant/kernels/factories.hpp"

namespace orthant::kernels {
namespace {

using model::ConvTask;
using model::Pass;

}  // namespace

std::vector<ConvCandidate> conv_candidates(const ConvTask& task, int threads) {
  std::vector<ConvCandidate> candidates;
  if (auto onednn = make_onednn_conv(task, threads)) candidates.push_back({"onednn", std::move(onednn)});
  candidates.push_back({"direct", make_direct_conv(task, threads)});
  return candidates;
}

std::unique_ptr<Primitive> make_conv(const ConvTask& task, int threads) {
  if (auto onednn = make_onednn_conv(task, threads)) return onednn;
  return make_direct_conv(task, threads);
}

}  // namespace orthant::kernels
