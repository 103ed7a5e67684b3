#include "orthant/base/json.hpp"

#include "orthant/base/error.hpp"

#include <gtest/gtest.h>

namespace orthant::base {
namespace {

std::string message_of(const std::string& text) {
  try {
    parse_json(text, "file.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_data);
    return error.what();
  }
  return "";
}

TEST(Json, KeepsTheOrderOfKeys) {
  const std::string text = R"({"zeta":1,"alpha":[1,2.5,"x"],"mid":{"b":null,"a":true}})";
  EXPECT_EQ(parse_json(text, "file.json").dump(), text);
}

TEST(Json, RefusesMalformedTextNamingTheFile) {
  for (const char* text : {"", "{", R"({"a":})", R"({"a":1} x)", "nul", "[1,]", "\"\xff\""}) {
    const std::string message = message_of(text);
    EXPECT_EQ(message.rfind("file.json: ", 0), 0U) << text << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Json, RefusesAKeyThatAppearsTwice) {
  EXPECT_EQ(message_of(R"({"a":1,"b":2,"a":3})"), "file.json: key 'a' appears twice");
  EXPECT_EQ(message_of(R"({"a":{"c":1},"b":{"c":1}})"), "");
}

TEST(Json, RefusesDeepNesting) { EXPECT_NE(message_of(std::string(100000, '[')), ""); }

}  // namespace
}  // namespace orthant::base
