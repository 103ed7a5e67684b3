#include "tests/model/message.hpp"

#include "orthant/model/document.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

std::string refusal(const std::string& text) {
  return message_of([&] { parse_document(text, "f.yaml"); });
}

TEST(ParseDocument, KeepsOrderAndLines) {
  const Document document = parse_document("b: 1\na:\n  - x\n  - {k: 'null'}\nc:\n", "f.yaml");

  ASSERT_EQ(document.kind, Document::Kind::map);
  ASSERT_EQ(document.entries.size(), 3U);
  EXPECT_EQ(document.entries[0].first, "b");
  EXPECT_EQ(document.entries[0].second.scalar, "1");
  EXPECT_EQ(document.entries[1].second.line, 2);
  EXPECT_EQ(document.entries[1].second.items.at(0).scalar, "x");
  EXPECT_EQ(document.entries[1].second.items.at(1).line, 4);
  EXPECT_EQ(document.entries[1].second.items.at(1).entries.at(0).second.scalar, "null");
  EXPECT_EQ(document.entries[2].second.kind, Document::Kind::null);
}

TEST(ParseDocument, ReadsWhatItWrites) {
  const std::string text = to_text(parse_document("a: 1\nb: [x, y, {c: d}]\ne: ~\nf: []\n", "f.yaml"));

  EXPECT_EQ(to_text(parse_document(text, "g.yaml")), text);
}

TEST(ParseDocument, TakesEmptyText) { EXPECT_EQ(parse_document("", "f.yaml").kind, Document::Kind::null); }

TEST(ParseDocument, RefusesWhatIsMalformed) {
  EXPECT_EQ(refusal("a: [1, 2\n"), "65: f.yaml:2: not YAML: end of sequence flow not found");
  EXPECT_EQ(refusal("a: 1\nb: 2\na: 3\n"), "65: f.yaml:3: key 'a' appears twice; keep one");
  EXPECT_EQ(refusal("[1]: 2\n"), "65: f.yaml:1: a key that is no word");
  EXPECT_EQ(refusal("~: 2\n"), "65: f.yaml:1: a key that is no word");
  EXPECT_EQ(refusal("a: 1\n---\nb: 2\n"), "65: f.yaml:2: a second document; put it into a file of its own");
}

TEST(ParseDocument, RefusesWhatCanExpandWithoutEnd) {
  EXPECT_EQ(refusal("a: &x [1]\nb: *x\n"), "65: f.yaml:1: an anchor (&name); write the value out where it is used");
  EXPECT_EQ(refusal("a: !!python/object 1\n"), "65: f.yaml:1: a tag (!name); plain values are enough");
  std::string nested;
  for (int i = 0; i < 40; ++i) nested += "- ";
  EXPECT_EQ(refusal(nested + "x"), "65: f.yaml:1: lists and maps are nested too deeply");
  EXPECT_NE(refusal(std::string(1 << 20, '[')), "nothing");
  EXPECT_EQ(refusal(std::string((1 << 20) + 1, ' ')),
            "65: f.yaml: 1048577 bytes; at most 1048576 are read as YAML, is this the right file?");
}

}  // namespace
}  // namespace orthant::model
