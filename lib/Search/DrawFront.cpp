//===- DrawFront.cpp - the front of a search as a picture -----------------===//
#include "stage/Report/FrontPicture.h"
#include "stage/Search/Search.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using Kind = FrontAxis::Quantity;

static FrontAxis makeAxis(unsigned record) {
  const sema::SearchRecord &of = sema::getSearchRecords()[record];
  Kind quantity = llvm::StringSwitch<Kind>(of.name)
                      .Cases("step", "exposed", Kind::Seconds)
                      .Case("memory", Kind::Bytes)
                      .Cases("mfu", "bubble", Kind::Share)
                      .Case("cost", Kind::Dollars)
                      .Case("energy", Kind::Joules)
                      .Default(Kind::Tokens);
  return {of.name.str(), quantity, of.isMost};
}

/// `tp 2, zero 1`: of all values that differ within the front, or of those that another plan has not.
static std::string describeValues(const SearchResult &result, const FoundPlan &plan, const std::vector<bool> &differs,
                                  const FoundPlan *other) {
  std::string text;
  for (size_t i = 0; i != result.names.size(); ++i) {
    const std::string &value = plan.values[i];
    if (!differs[i] || value.empty() || (other && other->values[i] == value))
      continue;
    text += text.empty() ? "" : ", ";
    text += result.names[i] == "strategy" ? value : result.names[i] + " " + value;
  }
  return text;
}

void stage::printFront(llvm::raw_ostream &os, const SearchResult &result, const PictureFrame &frame) {
  FrontPicture picture;
  picture.x = makeAxis(result.getObjectives()[0]);
  picture.y = makeAxis(result.getObjectives()[1]);
  std::vector<bool> differs(result.names.size());
  for (const FoundPlan &plan : result.best)
    for (size_t i = 0; i != differs.size(); ++i)
      differs[i] = differs[i] || plan.values[i] != result.best.front().values[i];
  // Along the front a label says what a plan changes.
  const FoundPlan *before = nullptr;
  for (const FoundPlan &plan : result.best) {
    std::string all = describeValues(result, plan, differs, nullptr);
    picture.front.push_back({plan.records[result.getObjectives()[0]], plan.records[result.getObjectives()[1]],
                             before ? describeValues(result, plan, differs, before) : all, all});
    before = &plan;
  }
  picture.others = result.behindFront;
  std::string same;
  for (size_t i = 0; i != differs.size(); ++i)
    if (!differs[i] && !result.best.front().values[i].empty())
      same += (same.empty() ? "" : ", ") + result.names[i] + " = " + result.best.front().values[i];
  picture.lines.push_back(formatCount(result.numFit) + " of " + formatCount(result.numCandidates) +
                          " candidates fit; each label says what its plan changes of the plan before it");
  if (!same.empty())
    picture.lines.push_back("all plans of the line: " + same);
  PictureFrame framed = frame;
  if (framed.title.empty())
    framed.title = "job " + result.job + ": " + picture.x.title + " and " + picture.y.title;
  printFront(os, picture, framed);
}
