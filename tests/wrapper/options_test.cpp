#include "orthant/wrapper/options.hpp"

#include "orthant/base/error.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace orthant::test {
namespace {

using wrapper::Options;

Options read(const std::map<std::string, std::string>& values) {
  return wrapper::read_options([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

std::string complaint(const std::string& name, const std::string& value) {
  try {
    read({{name, value}});
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Options, HaveDefaults) {
  const Options options = read({});
  EXPECT_EQ(options.limit_bytes, 64 << 20);
  EXPECT_FALSE(options.total_bytes);
  EXPECT_EQ(options.policy, microbatch::Policy::power_of_two);
  EXPECT_FALSE(options.fast);
  EXPECT_FALSE(options.summary);
}

TEST(Options, AreRead) {
  const Options options = read({{"ORTHANT_WORKSPACE_LIMIT", "8MiB"},
                                {"ORTHANT_TOTAL_WORKSPACE", "1.5 GiB"},
                                {"ORTHANT_BATCH_POLICY", "undivided"},
                                {"ORTHANT_ERROR", "fast"},
                                {"ORTHANT_SUMMARY", "1"}});
  EXPECT_EQ(options.limit_bytes, 8 << 20);
  EXPECT_EQ(options.total_bytes, std::int64_t{1536} << 20);
  EXPECT_EQ(options.policy, microbatch::Policy::undivided);
  EXPECT_TRUE(options.fast);
  EXPECT_TRUE(options.summary);
}

TEST(Options, NumbersOfBytesHaveUnits) {
  EXPECT_EQ(wrapper::bytes_from("0"), 0);
  EXPECT_EQ(wrapper::bytes_from("1000"), 1000);
  EXPECT_EQ(wrapper::bytes_from("2KiB"), 2048);
  EXPECT_EQ(wrapper::bytes_from("1.5MB"), 1500000);
  for (const char* text : {"", "-1", "MiB", "64 apples", "nan", "inf", "1e30", "64MiB x"})
    EXPECT_FALSE(wrapper::bytes_from(text)) << text;
}

TEST(Options, BadValuesAreNamed) {
  EXPECT_NE(complaint("ORTHANT_WORKSPACE_LIMIT", "-3").find("ORTHANT_WORKSPACE_LIMIT is '-3'"), std::string::npos);
  EXPECT_NE(complaint("ORTHANT_TOTAL_WORKSPACE", "much").find("ORTHANT_TOTAL_WORKSPACE"), std::string::npos);
  EXPECT_NE(complaint("ORTHANT_BATCH_POLICY", "powerofTwo").find("did you mean 'powerOfTwo'"), std::string::npos);
  EXPECT_NE(complaint("ORTHANT_ERROR", "slow").find("ORTHANT_ERROR is 'slow'"), std::string::npos);
  EXPECT_NE(complaint("ORTHANT_SUMMARY", "yes").find("ORTHANT_SUMMARY"), std::string::npos);
}

}  // namespace
}  // namespace orthant::test
