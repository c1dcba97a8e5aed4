#include "xsa/eval/plan.h"

#include <gmock/gmock.h>

namespace xsa::eval {
namespace {

using Tokens = std::vector<text::Token>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Items that own their ids.
struct Asked {
  std::vector<std::pair<Tokens, Tokens>> ids;
  std::vector<std::int64_t> records;
  void add(std::int64_t record, Tokens context, Tokens continuation) {
    ids.emplace_back(std::move(context), std::move(continuation));
    records.push_back(record);
  }
  std::vector<Item> items() const {
    std::vector<Item> result;
    for (std::size_t i = 0; i < ids.size(); ++i)
      result.push_back({ids[i].first, ids[i].second, records[i]});
    return result;
  }
};

Group only_group(const Asked& asked, std::int64_t context = 100) {
  const std::vector<Pack> packs = plan(asked.items(), context, {});
  EXPECT_EQ(packs.size(), 1u);
  EXPECT_EQ(packs.front().size(), 1u);
  return packs.front().front();
}

std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, text::Token>> targets(
    const Group& group) {
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, text::Token>> rows;
  for (const Target& t : group.targets) rows.emplace_back(t.item, t.piece, t.position, t.token);
  return rows;
}

using Row = std::tuple<std::int64_t, std::int64_t, std::int64_t, text::Token>;

TEST(Plan, AContextThatChoicesShareIsComputedOnce) {
  Asked asked;
  asked.add(0, {1, 2, 3}, {7, 8, 9});
  asked.add(0, {1, 2, 3}, {5, 6});
  const Group group = only_group(asked);
  EXPECT_THAT(group.prefix, ElementsAre(1, 2, 3));
  EXPECT_THAT(group.branches, ElementsAre(ElementsAre(7, 8), ElementsAre(5)));
  EXPECT_THAT(targets(group), ElementsAre(Row{0, -1, 2, 7}, Row{0, 0, 0, 8}, Row{0, 0, 1, 9},
                                          Row{1, -1, 2, 5}, Row{1, 1, 0, 6}));
  EXPECT_EQ(group.tokens(), 6);
}

TEST(Plan, WhatContinuationsShareIsComputedOnceAsWell) {
  Asked asked;
  asked.add(0, {1}, {4, 5, 6});
  asked.add(0, {1}, {4, 5, 7, 8});
  const Group group = only_group(asked);
  EXPECT_THAT(group.prefix, ElementsAre(1, 4, 5));
  EXPECT_THAT(group.branches, ElementsAre(IsEmpty(), ElementsAre(7)));
  EXPECT_THAT(targets(group),
              ElementsAre(Row{0, -1, 0, 4}, Row{0, -1, 1, 5}, Row{0, -1, 2, 6}, Row{1, -1, 0, 4},
                          Row{1, -1, 1, 5}, Row{1, -1, 2, 7}, Row{1, 1, 0, 8}));
}

TEST(Plan, ContextsThatDifferShareTheirBeginning) {
  Asked asked;
  asked.add(0, {1, 2, 3}, {9});
  asked.add(0, {1, 2, 4, 5}, {9});
  const Group group = only_group(asked);
  EXPECT_THAT(group.prefix, ElementsAre(1, 2));
  EXPECT_THAT(group.branches, ElementsAre(ElementsAre(3), ElementsAre(4, 5)));
  EXPECT_THAT(targets(group), ElementsAre(Row{0, 0, 0, 9}, Row{1, 1, 1, 9}));
}

TEST(Plan, OneTokenContinuationsShareOnePass) {
  Asked asked;
  asked.add(0, {1, 2}, {8});
  asked.add(0, {1, 2}, {9});
  asked.add(0, {1}, {2, 7});  // sees the same tokens, split elsewhere
  const Group group = only_group(asked);
  EXPECT_THAT(group.prefix, IsEmpty());
  EXPECT_THAT(group.branches, ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(targets(group),
              ElementsAre(Row{0, 0, 1, 8}, Row{1, 0, 1, 9}, Row{2, 0, 0, 2}, Row{2, 0, 1, 7}));
}

TEST(Plan, TheModelSeesTheLastTokensOfWhatIsTooLong) {
  Asked asked;
  asked.add(0, {1, 2, 3}, {4, 5});
  EXPECT_THAT(only_group(asked, 4).branches, ElementsAre(ElementsAre(1, 2, 3, 4)));
  EXPECT_FALSE(is_truncated(asked.items().front(), 4));
  EXPECT_THAT(only_group(asked, 3).branches, ElementsAre(ElementsAre(2, 3, 4)));
  EXPECT_TRUE(is_truncated(asked.items().front(), 3));
  EXPECT_THAT(targets(only_group(asked, 3)), ElementsAre(Row{0, 0, 1, 4}, Row{0, 0, 2, 5}));
  EXPECT_THAT(only_group(asked, 2).branches, ElementsAre(ElementsAre(3, 4)));
  EXPECT_THAT(targets(only_group(asked, 2)), ElementsAre(Row{0, 0, 0, 4}, Row{0, 0, 1, 5}));
}

TEST(Plan, ChoicesThatAreCutShareNothingThatTheyDoNotSee) {
  Asked asked;
  asked.add(0, {1, 2, 3}, {4, 5});
  asked.add(0, {1, 2, 3}, {4, 5, 6});
  const Group group = only_group(asked, 4);  // sees 1 2 3 4 and 2 3 4 5
  EXPECT_THAT(group.prefix, IsEmpty());
  EXPECT_THAT(group.branches, ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(2, 3, 4, 5)));
}

TEST(Plan, LongRecordsComeFirstAndPacksKeepToTheBudget) {
  Asked asked;
  for (std::int64_t record = 0; record < 9; ++record)
    asked.add(record, Tokens(static_cast<std::size_t>(1 + record), 3), {1});
  std::vector<std::int64_t> order, sizes;
  for (const Pack& pack : plan(asked.items(), 100, {.tokens = 10})) {
    std::int64_t tokens = 0;
    for (const Group& group : pack) {
      order.push_back(group.targets.front().item);
      tokens += group.tokens();
    }
    sizes.push_back(tokens);
  }
  EXPECT_THAT(order, ElementsAre(8, 7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_THAT(sizes, ElementsAre(9, 8, 7, 6, 9, 6));
}

TEST(Plan, AGroupBeyondTheBudgetGoesAlone) {
  Asked asked;
  asked.add(0, Tokens(50, 3), {1});
  asked.add(1, {3}, {1});
  EXPECT_EQ(plan(asked.items(), 100, {.tokens = 10}).size(), 2u);
}

TEST(Plan, OneItemToAPackSharesNothing) {
  Asked asked;
  for (text::Token choice = 0; choice < 3; ++choice) asked.add(0, {1, 2}, {choice, 5});
  const std::vector<Pack> packs = plan(asked.items(), 100, {.items = 1});
  ASSERT_EQ(packs.size(), 3u);
  for (const Pack& pack : packs) EXPECT_THAT(pack.front().prefix, IsEmpty());
  EXPECT_EQ(plan(asked.items(), 100, {.items = 2}).size(), 2u);
  EXPECT_EQ(plan(asked.items(), 100, {.items = 3}).size(), 1u);
}

TEST(Plan, NothingAskedMakesNoPack) { EXPECT_THAT(plan({}, 100, {}), IsEmpty()); }

}  // namespace
}  // namespace xsa::eval
