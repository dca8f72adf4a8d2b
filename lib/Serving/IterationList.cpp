//===- IterationList.cpp - some iterations, to be shown -------------------===//
#include "stage/Serving/IterationList.h"
#include "Timestamp.h"
#include "stage/Support/Records.h"

using namespace stage;
using namespace stage::serving;
using llvm::StringRef;

void IterationList::step(const Step &step) {
  ++numSteps;
  if (step.number >= first && step.number < last)
    for (const Iteration &iteration : step.iterations)
      entries.push_back({iteration, step.duration});
}

void IterationList::print(llvm::raw_ostream &os) const {
  Table table(
      {{"start, s", Table::Right}, {"lasts, s", Table::Right}, {"blocks", Table::Right}, {"iteration", Table::Left}},
      0);
  for (const Entry &entry : entries)
    table.addRow({formatSeconds(entry.iteration.start), formatSeconds(entry.duration),
                  formatCount(entry.iteration.blocks), getName(entry.iteration, hasReplicas)});
  table.print(os);
}

static std::vector<Records> listMoved(llvm::ArrayRef<MovedTokens> moved) {
  std::vector<Records> rows;
  for (const MovedTokens &tokens : moved)
    rows.push_back({{"request", "", tokens.request}, {"tokens", "", tokens.tokens}});
  return rows;
}

void IterationList::printJson(llvm::json::OStream &json) const {
  auto print = [&](const Entry &entry) {
    const Iteration &iteration = entry.iteration;
    writeMembers(json, {{"name", "", getName(iteration, hasReplicas)},
                        {"number", "", iteration.number},
                        {"replica", "", iteration.replica},
                        {"start_s", "", Record::Digits{formatSeconds(iteration.start)}},
                        {"duration_s", "", Record::Digits{formatSeconds(entry.duration)}},
                        {"new_tokens", "", iteration.newTokens},
                        {"cached_tokens", "", iteration.cachedTokens},
                        {"attended_pairs", "", iteration.attendedPairs},
                        {"twice_area", "", iteration.twiceArea},
                        {"sampling", "", iteration.sampling},
                        {"logits", "", iteration.logits},
                        {"drafts", "", iteration.drafts},
                        {"loaded_tokens", "", iteration.loadedTokens},
                        {"recomputed_tokens", "", iteration.recomputedTokens},
                        {"blocks", "", iteration.blocks},
                        {"blocks_out", "", iteration.blocksOut},
                        {"blocks_in", "", iteration.blocksIn},
                        {"preemptions", "", iteration.preemptions}});
    for (auto [key, moved] : {std::pair("stored", &iteration.stored), {"loaded", &iteration.loaded}})
      if (!moved->empty())
        writeRows(json, key, listMoved(*moved));
    json.attributeArray("sequences", [&] {
      for (const Sequence &sequence : iteration.sequences)
        json.object([&] {
          json.attribute("request", sequence.request);
          json.attribute("new", sequence.newTokens);
          json.attribute("cached", sequence.cachedTokens);
          json.attribute("drafts", sequence.drafts);
          json.attribute("samples", sequence.samples);
          json.attribute("decodes", sequence.decodes);
        });
    });
  };
  json.attributeArray("listed", [&] {
    for (const Entry &entry : entries)
      json.object([&] { print(entry); });
  });
}
