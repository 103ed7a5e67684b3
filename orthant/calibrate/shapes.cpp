#include "orthant/calibrate/shapes.hpp"

#include "orthant/base/format.hpp"
#include "orthant/model/network.hpp"
#include "orthant/plan/request.hpp"

#include <algorithm>

namespace orthant::calibrate {

const std::vector<Sample>& general_samples() {
  static const std::vector<Sample> samples{{"cosmoflow", "4x64x64x64", 1},
                                           {"resnet50", "3x224x224", 2},
                                           {"unet3d", "1x32x32x32", 1},
                                           {"cosmoflow", "4x128x128x128", 1, "d8"},
                                           {"cosmoflow", "4x32x32x32", 4},
                                           {"vgg16", "3x224x224", 1},
                                           {"resnet50", "3x224x224", 8, "n8"},
                                           {"unet3d", "1x64x64x64", 1, "d8"},
                                           {"cosmoflow", "4x64x64x64", 1, "f4"},
                                           {"cosmoflow", "4x64x64x64", 1, "c4"},
                                           {"resnet50", "3x224x224", 4, "f4"},
                                           {"resnet50", "3x224x224", 4, "c4"},
                                           {"cosmoflow", "4x64x64x64", 1, "d16"},
                                           {"cosmoflow", "4x128x128x128", 1, "d2h2w2"},
                                           {"unet3d", "1x64x64x64", 1, "h2w2"},
                                           {"resnet50", "3x224x224", 2, "h4"},
                                           {"alexnet", "3x224x224", 4},
                                           {"cosmoflow-mlperf", "4x64x64x64", 1},
                                           {"vgg16", "3x112x112", 4},
                                           {"resnet50", "3x112x112", 16},
                                           {"unet3d", "1x64x64x64", 1, "f2"},
                                           {"vgg16", "3x224x224", 4, "f4"},
                                           {"cosmoflow", "4x128x128x128", 1},
                                           {"unet3d", "1x64x64x64", 1}};
  return samples;
}

std::string text_of(const Sample& sample) {
  return fmt::format("{} {} x{}{}{}", sample.network, sample.input, sample.mini_batch, sample.grid.empty() ? "" : " ",
                     sample.grid);
}

schedule::Schedule schedule_of(const Sample& sample, const schedule::LowerOptions& options) {
  const model::Graph graph =
      model::load_network(sample.network, {.input = sample.input, .mini_batch = sample.mini_batch, .settings = {}});
  const plan::PlanRequest request{.grid = sample.grid};
  const int ranks = std::max(1, plan::ranks_of(request));
  return schedule::lower(graph, plan::make_plan(graph, request, ranks), ranks / 2, options);
}

}  // namespace orthant::calibrate
