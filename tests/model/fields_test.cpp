#include "tests/model/message.hpp"

#include "orthant/model/fields.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

const std::string origin = "f.yaml";
const std::vector<std::string> known{"rate", "count", "name", "on", "list"};

TEST(Fields, ReadValuesOfTheirKind) {
  const Document document = parse_document("rate: 1e-3\ncount: -4\nname: '12'\non: true\n", origin);
  const Fields fields(document, origin, known);

  EXPECT_EQ(fields.number("rate"), 1e-3);
  EXPECT_EQ(fields.integer("count"), -4);
  EXPECT_EQ(fields.word("name"), "12");
  EXPECT_TRUE(fields.flag_or("on", false));
  EXPECT_EQ(fields.integer_or("list", 7), 7);
  EXPECT_EQ(fields.number_or("list", 0.5), 0.5);
  EXPECT_EQ(fields.find("list"), nullptr);
}

TEST(Fields, NameFileAndLineInErrors) {
  const Document document = parse_document("rate: fast\ncount: 1.5\nname: [a]\non: yes\n", origin);
  const Fields fields(document, origin, known);

  EXPECT_EQ(message_of([&] { (void)fields.number("rate"); }), "65: f.yaml:1: rate is 'fast'; it must be a number");
  EXPECT_EQ(message_of([&] { (void)fields.integer("count"); }),
            "65: f.yaml:2: count is '1.5'; it must be a whole number");
  EXPECT_EQ(message_of([&] { (void)fields.word("name"); }), "65: f.yaml:3: name is a list; it must be a word");
  EXPECT_EQ(message_of([&] { (void)fields.flag_or("on", true); }),
            "65: f.yaml:4: on is 'yes'; it must be true or false");
  EXPECT_EQ(message_of([&] { (void)fields.word("list"); }), "65: f.yaml:1: key 'list' is missing; add it");
}

TEST(Fields, SuggestTheNearestKey) {
  const Document typo = parse_document("rate: 1\ncuont: 2\n", origin);
  const Document list = parse_document("- 1\n", origin);

  EXPECT_EQ(message_of([&] { Fields(typo, origin, known); }),
            "65: f.yaml:2: unknown key 'cuont'; did you mean 'count'?");
  EXPECT_EQ(message_of([&] { Fields(list, origin, known); }),
            "65: f.yaml:1: a list where a map of rate, count, name, on, list is needed");
}

TEST(Fields, RefuseNumbersThatAreNone) {
  for (const char* text : {"nan", "inf", "1e999", "", "0x10", "1_000", "1,5"}) {
    const Document document = parse_document(std::string("rate: '") + text + "'\n", origin);
    const Fields fields(document, origin, known);
    EXPECT_NE(message_of([&] { (void)fields.number("rate"); }), "nothing") << text;
  }
}

}  // namespace
}  // namespace orthant::model
