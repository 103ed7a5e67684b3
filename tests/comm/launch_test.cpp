#include "orthant/comm/launch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace orthant::comm {
namespace {

std::string words_of(const LaunchCommand& command) {
  std::string text;
  for (const std::string& word : command.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string value_of(const LaunchCommand& command, const std::string& name) {
  for (const auto& [key, value] : command.environment)
    if (key == name) return value;
  return "";
}

TEST(Launch, RanksThatFitHaveCoresOfTheirOwn) {
  const std::vector<std::string> arguments{"bench", "step"};
  const LaunchCommand command = launch_command({.ranks = 2, .threads = 3, .program = "/bin/p", .arguments = arguments},
                                               {.cores = 6, .threads = 6});

  EXPECT_EQ(words_of(command),
            "mpirun --quiet -np 2 -x OMP_NUM_THREADS --bind-to core --map-by slot:PE=3 /bin/p bench step");
  EXPECT_EQ(value_of(command, "OMP_NUM_THREADS"), "3");
  EXPECT_EQ(value_of(command, "OMPI_MCA_mpi_yield_when_idle"), "");
  EXPECT_EQ(value_of(command, "OMPI_ALLOW_RUN_AS_ROOT"), "");
  EXPECT_EQ(command.warning, "");
}

TEST(Launch, HyperThreadsAreUsedOnlyWhenCoresAreFew) {
  const LaunchCommand command =
      launch_command({.ranks = 4, .threads = 2, .program = "/bin/p"}, {.cores = 4, .threads = 8});

  EXPECT_EQ(words_of(command),
            "mpirun --quiet -np 4 -x OMP_NUM_THREADS --use-hwthread-cpus --bind-to hwthread --map-by slot:PE=2 /bin/p");
}

TEST(Launch, APartOfTheMachineIsInheritedAndNotBound) {
  const LaunchCommand command =
      launch_command({.ranks = 2, .threads = 1, .program = "/bin/p"}, {.cores = 2, .threads = 2, .is_part = true});

  EXPECT_EQ(words_of(command), "mpirun --quiet -np 2 -x OMP_NUM_THREADS --oversubscribe --bind-to none /bin/p");
  EXPECT_EQ(command.warning, "");
}

TEST(Launch, MoreRanksThanProcessorsShareThemWithAWarning) {
  const LaunchCommand command =
      launch_command({.ranks = 4, .threads = 1, .program = "/bin/p", .is_root = true}, {.cores = 2, .threads = 2});

  EXPECT_EQ(words_of(command), "mpirun --quiet -np 4 -x OMP_NUM_THREADS --oversubscribe --bind-to none /bin/p");
  EXPECT_EQ(value_of(command, "OMPI_MCA_mpi_yield_when_idle"), "1");
  EXPECT_EQ(value_of(command, "OMP_WAIT_POLICY"), "passive");
  EXPECT_EQ(value_of(command, "OMPI_ALLOW_RUN_AS_ROOT"), "1");
  EXPECT_EQ(command.warning, "4 ranks of 1 thread on 2 processors: ranks share processors, so the job is slow");
}

TEST(Launch, RanksOnHostsFindTheirProcessorsThemselves) {
  const std::vector<std::string> arguments{"train", "run.yaml", "--hosts", "a:2,b:1"};
  LaunchRequest request{.ranks = 3,
                        .threads = 0,
                        .program = "/bin/p",
                        .arguments = arguments,
                        .hosts = {{"a", 2}, {"b", 1}},
                        .host_processors = {2, std::nullopt},
                        .folder = "/data/my runs",
                        .variables = {"ORTHANT_CACHE"}};
  LaunchCommand command = launch_command(request, {.cores = 1, .threads = 1});

  EXPECT_EQ(words_of(command),
            "mpirun --quiet -np 3 --host a:2,b:1 --wdir /data/my runs --map-by slot --bind-to none -x ORTHANT_CACHE -x "
            "ORTHANT_STARTED_ON_HOSTS /bin/p train run.yaml --hosts a:2,b:1");
  EXPECT_FALSE(command.has_threads);
  EXPECT_EQ(value_of(command, "ORTHANT_STARTED_ON_HOSTS"), "1");
  EXPECT_EQ(value_of(command, "OMPI_MCA_oob_tcp_keepalive_time"), "9");
  EXPECT_EQ(value_of(command, "OMPI_MCA_btl_tcp_rdma_pipeline_frag_size"), "131072");
  EXPECT_EQ(command.warning, "");

  request.threads = 2;
  command = launch_command(request, {.cores = 64, .threads = 64});
  EXPECT_TRUE(command.has_threads);
  EXPECT_EQ(value_of(command, "OMP_NUM_THREADS"), "2");
  EXPECT_EQ(value_of(command, "OMP_WAIT_POLICY"), "passive");
  EXPECT_NE(words_of(command).find("-x OMP_NUM_THREADS --host"), std::string::npos);
  EXPECT_NE(words_of(command).find("-x OMP_WAIT_POLICY"), std::string::npos);
  EXPECT_EQ(command.warning,
            "2 ranks of 2 threads on 2 processors of host 'a': ranks share processors, so the job is slow");
}

TEST(Launch, OtherHostsGetWhatRanksNeedOfTheEnvironment) {
  const std::vector<const char*> environment{
      "HOME=/h",        "OMP_NUM_THREADS=2",  "ORTHANT_CACHE=x", "DNNL_VERBOSE=1",
      "OMP_PROC_BIND=", "LD_LIBRARY_PATH=/l", "ONEDNN_JIT=a=b",  nullptr};
  EXPECT_EQ(
      variables_for_ranks(environment.data()),
      (std::vector<std::string>{"DNNL_VERBOSE", "LD_LIBRARY_PATH", "OMP_PROC_BIND", "ONEDNN_JIT", "ORTHANT_CACHE"}));
}

/// Variables of the environment for the length of a test.
class LaunchedTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : names_) unsetenv(name);
  }
  void TearDown() override { SetUp(); }

 private:
  const std::vector<const char*> names_{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                                        "SLURM_PROCID",         "SLURM_STEP_NUM_TASKS"};
};

TEST_F(LaunchedTest, NothingInTheEnvironmentIsNoLauncher) { EXPECT_FALSE(launched()); }

TEST_F(LaunchedTest, LaunchersAreKnownByTheirVariables) {
  setenv("SLURM_PROCID", "5", 1);
  setenv("SLURM_STEP_NUM_TASKS", "8", 1);
  EXPECT_EQ(launched()->rank, 5);
  EXPECT_EQ(launched()->size, 8);

  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_EQ(launched()->rank, 1);
  EXPECT_EQ(launched()->size, 2);
}

TEST_F(LaunchedTest, AShellOfSlurmAndNonsenseAreNoLaunchers) {
  setenv("SLURM_PROCID", "0", 1);
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  setenv("PMI_RANK", "x", 1);
  setenv("PMI_SIZE", "2", 1);

  EXPECT_FALSE(launched());
}

TEST(Launch, ProcessorsAndBindingAreOfThisProcess) {
  EXPECT_GE(processors().cores, 1);
  EXPECT_GE(processors().threads, processors().cores);
  EXPECT_NE(binding_text().find(", processors "), std::string::npos);
}

}  // namespace
}  // namespace orthant::comm
