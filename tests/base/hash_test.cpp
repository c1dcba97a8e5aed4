#include "xsa/base/hash.h"

#include <gtest/gtest.h>

namespace xsa {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Sha256, GivesThePublishedDigests) {  // FIPS 180-4's examples
  EXPECT_EQ(sha256(bytes("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(bytes(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfPiecesIsThatOfTheWhole) {
  Sha256 hash;
  for (const char* piece : {"", "a", "", "bc"}) hash.add(bytes(piece));
  EXPECT_EQ(hash.hex(), sha256(bytes("abc")));
}

}  // namespace
}  // namespace xsa
