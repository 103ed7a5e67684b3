#include "orthant/train/run_file.hpp"

#include "tests/data/temporary.hpp"

namespace orthant::train {
namespace {

using base::Exit;
using test::expect_error;

RunFile read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  model::Document document = model::parse_document(text, "run.yaml");
  for (const std::string& key_and_value : overrides) apply_override(document, key_and_value);
  return read_run(document, "run.yaml");
}

TEST(RunFile, FillsInDefaults) {
  const RunFile run = read("model: cosmoflow\n");

  EXPECT_EQ(run.model, "cosmoflow");
  EXPECT_EQ(run.network.mini_batch, 1);
  EXPECT_EQ(run.epochs, 1);
  EXPECT_EQ(run.optimizer.kind, model::OptimizerKind::sgd);
  EXPECT_EQ(run.learning_rate, LearningRate{});
  EXPECT_EQ(run.data, DataOptions{});
}

TEST(RunFile, ReadsEveryKey) {
  const RunFile run = read(R"(model: unet3d
input: 1x32x32x32
settings: {classes: 3}
mini_batch: 2
steps: 40
optimizer: {kind: adamw, beta1: 0.8, beta2: 0.9, epsilon: 1e-6, weight_decay: 0.02}
learning_rate: {schedule: polynomial, base: 0.1, end: 0.001, power: 1.5, factor: 0.5, every: 7, warmup_steps: 5}
data: {kind: npy, inputs: [a.npy, b.npy], targets: t.npy, shuffle: false}
seed: 42
threads: 2
weights: w.safetensors
output: runs/x
overwrite: true
save_every: 10
)");

  EXPECT_EQ(run.network.settings.at("classes"), "3");
  EXPECT_EQ(run.steps, 40);
  EXPECT_EQ(run.epochs, 0);
  EXPECT_EQ(run.optimizer.kind, model::OptimizerKind::adamw);
  EXPECT_EQ(run.optimizer.weight_decay, 0.02);
  EXPECT_EQ(run.learning_rate, (LearningRate{.kind = LearningRate::Kind::polynomial,
                                             .base = 0.1,
                                             .end = 0.001,
                                             .power = 1.5,
                                             .factor = 0.5,
                                             .every = 7,
                                             .warmup_steps = 5}));
  EXPECT_EQ(run.data.inputs, (std::vector<std::string>{"a.npy", "b.npy"}));
  EXPECT_EQ(run.data.targets, std::vector<std::string>{"t.npy"});
  EXPECT_FALSE(run.data.shuffle);
  EXPECT_EQ(run.seed, 42U);
  EXPECT_EQ(run.save_every, 10);
}

TEST(RunFile, ReadsHdf5TransformsAndAugmentation) {
  const RunFile run = read(R"(model: cosmoflow
data:
  kind: hdf5
  files: [train, more/*.h5]
  input_key: full
  target_key: physPar
  axes: CDHW
  transforms: [log1p, {scale: 0.5}, {normalise: {mean: [1, 2], std: 3}}]
  augment: {flip: [d, w], permute: true}
  store: off
  store_limit: 4GiB
)");

  EXPECT_EQ(run.data.kind, DataOptions::Kind::hdf5);
  EXPECT_EQ(run.data.files, (std::vector<std::string>{"train", "more/*.h5"}));
  EXPECT_EQ(run.data.hdf5, (data::sets::Hdf5Options{.input_key = "full", .target_key = "physPar", .axes = "CDHW"}));
  EXPECT_EQ(run.data.transforms,
            (std::vector<data::sets::Transform>{data::sets::Log1p{}, data::sets::Scale{0.5},
                                                data::sets::Normalise{.mean = {1, 2}, .deviation = {3}}}));
  EXPECT_EQ(run.data.augment, (data::sets::Augmentation{.flip = {true, false, true}, .permute = true}));
  EXPECT_EQ(run.data.store, DataOptions::Store::off);
  EXPECT_EQ(run.data.store_limit, std::int64_t{4} << 30);
}

TEST(RunFile, KeepsSamplesOfFiles) {
  EXPECT_TRUE(keeps_samples(read("model: m\ndata: {kind: hdf5, files: a}\n").data));
  EXPECT_FALSE(keeps_samples(read("model: m\ndata: {kind: hdf5, files: a, store: off}\n").data));
  EXPECT_FALSE(keeps_samples(read("model: m\n").data));
  EXPECT_TRUE(keeps_samples(read("model: m\ndata: {store: memory}\n").data));
}

TEST(RunFile, ReadsBackWhatItWrites) {
  for (const char* text :
       {"model: resnet18\ninput: 3x64x64\nepochs: 3\noptimizer: adam\nlearning_rate: 0.02\ndata: synthetic\n",
        "model: a.yaml\nsteps: 3\noptimizer: {momentum: 0.9, nesterov: true}\nsettings: {width: 2}\n"
        "data: {kind: npy, inputs: 'x, y.npy', targets: '*.npy'}\nweights: w\noutput: o\n",
        "model: m\ndata: {kind: hdf5, files: a, input_key: full, axes: DHWC, transforms: [log1p, {scale: 2}, "
        "{normalise: {mean: 1, std: [1, 2]}}], augment: {flip: h}, store: memory, store_limit: 1.5MiB}\n"}) {
    const std::string written = model::to_text(to_document(read(text)));

    EXPECT_EQ(model::to_text(to_document(read(written))), written);
  }
}

TEST(RunFile, ShortFormsNameTheKindOrTheBase) {
  const RunFile run = read("model: m\noptimizer: adam\nlearning_rate: 0.5\ndata: synthetic\n");

  EXPECT_EQ(run.optimizer.kind, model::OptimizerKind::adam);
  EXPECT_EQ(run.learning_rate.base, 0.5);
}

TEST(RunFile, OverridesReplaceAndAddKeys) {
  const RunFile run =
      read("model: m\ndata: {samples: 5}\n", {"mini_batch=4", "data.samples=7", "learning_rate.base=0.25",
                                              "optimizer={kind: adam, beta1: 0.5}", "settings.batch_norm=true"});

  EXPECT_EQ(run.network.mini_batch, 4);
  EXPECT_EQ(run.data.samples, 7);
  EXPECT_EQ(run.learning_rate.base, 0.25);
  EXPECT_EQ(run.optimizer.beta1, 0.5);
  EXPECT_EQ(run.network.settings.at("batch_norm"), "true");
}

TEST(RunFile, StepsReplaceEpochs) {
  EXPECT_EQ(read("model: m\nepochs: 3\n", {"steps=7"}).epochs, 0);
  EXPECT_EQ(read("model: m\nsteps: 3\n", {"epochs=7"}).steps, 0);
}

TEST(RunFile, ErrorsNameLineAndRemedy) {
  struct Case {
    std::string text, message;
  };
  const std::vector<Case> cases{
      {"model: m\nminibatch: 4\n", "run.yaml:2: unknown key 'minibatch'; did you mean 'mini_batch'?"},
      {"modle: m\n", "run.yaml:1: unknown key 'modle'; did you mean 'model'?"},
      {"mini_batch: 4\n", "run.yaml:1: key 'model' is missing"},
      {"", "run.yaml:1: "},
      {"- model\n", "run.yaml:1: "},
      {"model: m\nmini_batch: 0\n", "run.yaml:2: mini_batch is 0; it must be from 1 to 2147483647"},
      {"model: m\nmini_batch: -1\n", "run.yaml:2: mini_batch is -1"},
      {"model: m\nmini_batch: 99999999999\n", "run.yaml:2: mini_batch is 99999999999"},
      {"model: m\nmini_batch: 99999999999999999999\n", "must be a whole number"},
      {"model: m\nmini_batch: two\n", "run.yaml:2: mini_batch is 'two'; it must be a whole number"},
      {"model: m\nmini_batch: 1.5\n", "must be a whole number"},
      {"model: m\ndata: {store: disk}\n", "run.yaml:2: unknown store 'disk'"},
      {"model: m\ndata: {store_limit: 4GB}\n", "store_limit is '4GB'; it must be a number of bytes, e.g. 4GiB"},
      {"model: m\ndata: {store_limit: 0}\n", "store_limit is '0'"},
      {"model: m\ndata: {store_limit: -1GiB}\n", "store_limit is '-1GiB'"},
      {"model: m\ndata: {store_limit: GiB}\n", "store_limit is 'GiB'"},
      {"model: m\ndata: {store_limit: nan}\n", "store_limit is 'nan'"},
      {"model: m\ndata: {store_limit: 9e9TiB}\n", "store_limit is '9e9TiB'"},
      {"model: m\nsteps: 3\nepochs: 3\n", "give epochs or steps, not both"},
      {"model: m\noptimizer: sgdm\n", "run.yaml:2: unknown kind 'sgdm'; did you mean 'sgd'?"},
      {"model: m\noptimizer:\n  kind: sgd\n  momentm: 0.9\n",
       "run.yaml:4: unknown key 'momentm'; did you mean 'momentum'?"},
      {"model: m\noptimizer: {kind: adam, momentum: 0.9}\n", "momentum belongs to sgd"},
      {"model: m\noptimizer: {beta1: 0.9}\n", "beta1 belongs to adam"},
      {"model: m\noptimizer: {nesterov: true}\n", "nesterov needs a momentum"},
      {"model: m\noptimizer: {momentum: 1.5}\n", "momentum is 1.5; it must be from 0 on and below 1"},
      {"model: m\nlearning_rate: fast\n", "must be a number"},
      {"model: m\nlearning_rate: -1\n", "base is -1"},
      {"model: m\nlearning_rate: .nan\n", "must be a number"},
      {"model: m\nlearning_rate: {schedule: cosin}\n", "did you mean 'cosine'?"},
      {"model: m\ndata: {kind: hdf5}\n", "key 'files' is missing"},
      {"model: m\ndata: {kind: npy, inputs: a}\n", "key 'targets' is missing"},
      {"model: m\ndata: {kind: npy, inputs: [], targets: b}\n", "inputs must be a path or a list of paths"},
      {"model: m\ndata: {inputs: a}\n", "inputs belongs to kind: npy"},
      {"model: m\ndata: {kind: npy, inputs: a, targets: b, samples: 3}\n", "samples belongs to kind: synthetic"},
      {"model: m\ndata: {kind: npy, inputs: a, targets: b, files: c}\n", "files belongs to kind: hdf5"},
      {"model: m\ndata: {kind: hdf5, files: a, axes: WHDC}\n", "run.yaml:2: axes is 'WHDC'"},
      {"model: m\ndata: {transforms: [log]}\n", "unknown transform 'log'; did you mean 'log1p'?"},
      {"model: m\ndata: {transforms: [scale]}\n", "scale needs numbers"},
      {"model: m\ndata: {transforms: {log1p: 1}}\n", "log1p takes no value"},
      {"model: m\ndata: {transforms: [{scale: 1, normalise: 2}]}\n", "an entry of its own"},
      {"model: m\ndata: {transforms: {normalise: {mean: 0}}}\n", "key 'std' is missing"},
      {"model: m\ndata: {transforms: {normalise: {mean: 0, std: [1, 0]}}}\n", "std is 0; it must be above 0"},
      {"model: m\ndata: {augment: {flip: [x]}}\n", "unknown flip 'x'"},
      {"model: m\ndata: {augment: {permut: true}}\n", "did you mean 'permute'?"},
      {"model: m\noverwrite: maybe\n", "must be true or false"},
      {"model: m\nseed: -4\n", "seed is -4"},
      {"model: m\nmodel: m\n", "run.yaml:2: "},
      {"model: [\n", "run.yaml:"},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.text);
    expect_error(Exit::bad_data, bad.message, [&] { read(bad.text); });
  }
}

TEST(RunFile, ReadsAndWritesValidation) {
  const std::string base = "model: m\ndata: {kind: hdf5, files: a}\n";
  const RunFile part = read(base + "validation: {fraction: 0.2, every: 50}\n");
  const RunFile number = read(base + "validation: 0.25\n");
  const RunFile files = read(base + "validation: {files: [b, c]}\n");
  const RunFile npy = read("model: m\ndata: {kind: npy, inputs: a, targets: b}\nvalidation: {inputs: c, targets: d}\n");

  EXPECT_EQ(part.validation, (ValidationOptions{.fraction = 0.2, .every = 50}));
  EXPECT_EQ(number.validation.fraction, 0.25);
  EXPECT_EQ(files.validation.files, (std::vector<std::string>{"b", "c"}));
  EXPECT_FALSE(read(base).validation.any());
  for (const RunFile& run : {part, number, files, npy})
    EXPECT_EQ(read_run(to_document(run), "again").validation, run.validation);
  expect_error(Exit::bad_data, "fraction is 0.95", [&] { read(base + "validation: 0.95\n"); });
  expect_error(Exit::bad_data, "did you mean 'fraction'?", [&] { read(base + "validation: {fracton: 0.5}\n"); });
  expect_error(Exit::bad_data, "key 'targets' is missing",
               [] { read("model: m\ndata: {kind: npy, inputs: a, targets: b}\nvalidation: {inputs: c}\n"); });
}

TEST(RunFile, ErrorsInOverridesNameTheCommandLine) {
  expect_error(Exit::bad_data, "command line: unknown key 'minibatch'; did you mean 'mini_batch'?",
               [] { read("model: m\n", {"minibatch=4"}); });
  expect_error(Exit::bad_data, "command line: mini_batch is 'x'",
               [] { read("model: m\nmini_batch: 2\n", {"mini_batch=x"}); });
  expect_error(Exit::usage, "'steps' is no override; write key=value", [] { read("model: m\n", {"steps"}); });
  expect_error(Exit::usage, "is no override", [] { read("model: m\n", {"=3"}); });
  expect_error(Exit::usage, "empty key", [] { read("model: m\n", {"data..samples=3"}); });
  expect_error(Exit::usage, "single value", [] { read("model: m\noptimizer: adam\n", {"optimizer.beta1=0.5"}); });
}

TEST(RunFile, RefusesMissingFiles) {
  expect_error(Exit::missing_input, "cannot open 'no/such.yaml'", [] { load_run("no/such.yaml", {}); });
}

}  // namespace
}  // namespace orthant::train
