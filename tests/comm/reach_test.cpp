#include "orthant/comm/reach.hpp"

#include "tests/data/temporary.hpp"

#include <sys/stat.h>

namespace orthant::comm {
namespace {

using base::Exit;

/// Hosts that are answered for by a script in place of ssh, and a program that knows its version.
class ReachTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : names_) unsetenv(name);
    expected_ = {.program = make("program", "echo orthant 1.2, build abc"),
                 .folder = folder_.file(""),
                 .version = "orthant 1.2, build abc"};
  }
  void TearDown() override {
    for (const char* name : names_) unsetenv(name);
  }

  std::string make(const std::string& name, const std::string& body) {
    std::string path = folder_.write(name, "#!/bin/sh\n" + body + "\n");
    chmod(path.c_str(), 0755);
    return path;
  }
  /// The agent is called with a host and a command for its shell.
  std::vector<std::optional<int>> ask(const std::string& agent, std::vector<Host> hosts = {{"far", 2}}) {
    return ask_hosts(hosts, expected_, {make("agent", agent), "-option"});
  }
  void expect_refusal(Exit code, const std::string& message, const std::string& agent) {
    test::expect_error(code, message, [&] { ask(agent); });
  }

  test::TemporaryDirectory folder_;
  Expectation expected_;

 private:
  const std::vector<const char*> names_{"OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "SLURM_JOB_ID"};
};

TEST_F(ReachTest, HostsThatAnswerSayHowManyProcessorsTheyHave) {
  const auto here = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const auto found = ask("echo welcome; exec sh -c \"$3\"", {{"far", 2}, {"localhost", 2}, {"farther", 1}});

  ASSERT_EQ(found.size(), 3U);
  EXPECT_LE(found[0].value(), here);
  EXPECT_EQ(found[1], std::nullopt);
  EXPECT_EQ(found[2], found[0]);
}

TEST_F(ReachTest, HostsThatCannotRunTheProgramAreNamed) {
  expect_refusal(Exit::does_not_fit, "nothing can be started on host 'far': agent: no route to host; check its name",
                 "echo; echo agent: no route to host >&2; exit 255");
  expect_refusal(Exit::does_not_fit, "nothing can be started on host 'far': no answer; ", "exit 1");
  expect_refusal(Exit::does_not_fit, "nothing can be started on host 'far': good morning; ", "echo good morning");
  expect_refusal(Exit::missing_input, "host 'far' has no directory '", "exit 121");
  expect_refusal(Exit::missing_input, "host 'far' has no program '", "exit 122");
  expect_refusal(Exit::disagreement,
                 "host 'far' has orthant 1.1, build abc, but this machine has orthant 1.2, build abc; install the same",
                 "echo orthant 1.1, build abc; echo 4");
}

TEST_F(ReachTest, TheQuestionFindsMissingDirectoriesAndPrograms) {
  const std::string run = "exec sh -c \"$3\"";
  expected_.folder = folder_.file("it's not there");
  expect_refusal(Exit::missing_input, "has no directory '" + expected_.folder + "'", run);
  expected_.folder = folder_.file("");
  expected_.program = folder_.file("it's not there");
  expect_refusal(Exit::missing_input, "has no program '" + expected_.program + "'", run);
}

TEST_F(ReachTest, TheAgentIsThatOfOpenMpi) {
  EXPECT_EQ(launch_agent().front(), "ssh");
  setenv("OMPI_MCA_plm_rsh_agent", "rsh -l me : ssh", 1);
  EXPECT_EQ(launch_agent(), (std::vector<std::string>{"rsh", "-l", "me"}));
  setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_TRUE(launch_agent().empty());
  EXPECT_EQ(ask_hosts(std::vector<Host>{{"far", 1}}, expected_, launch_agent()).front(), std::nullopt);
  setenv("OMPI_MCA_plm", "rsh", 1);
  EXPECT_EQ(launch_agent().front(), "rsh");
}

}  // namespace
}  // namespace orthant::comm
