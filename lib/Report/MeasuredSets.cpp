//===- MeasuredSets.cpp - errors of predicted steps -----------------------===//
#include "stage/Report/MeasuredSets.h"
#include "stage/Report/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace stage;
using llvm::StringRef;

static constexpr StringRef header = "machine,runtime,kind,type,rows,ranks,bias,p90";

/// A whole number from 1 to a million millions.
static std::optional<int64_t> readCount(StringRef cell) {
  int64_t value = 0;
  return cell.getAsInteger(10, value) || value < 1 || value > 1'000'000'000'000 ? std::nullopt : std::optional(value);
}

/// Percent, with a sign.
static std::optional<Rational> readPercent(StringRef cell) {
  bool isNegative = cell.consume_front("-");
  std::optional<Rational> value = Rational::read(cell);
  if (!value || value->num < 0 || value->compare(Rational::integer(1000)) > 0 || value->den > 1'000'000)
    return std::nullopt;
  return Rational{isNegative ? -value->num : value->num, value->den};
}

static std::optional<MeasuredSet> readRow(StringRef line) {
  llvm::SmallVector<StringRef, 8> cells;
  line.split(cells, ',');
  if (cells.size() != 8 || llvm::any_of(cells, [](StringRef cell) { return cell.empty(); }))
    return std::nullopt;
  std::optional<int64_t> rows = readCount(cells[4]), ranks = readCount(cells[5]);
  std::optional<Rational> bias = readPercent(cells[6]), p90 = readPercent(cells[7]);
  if (!rows || !ranks || !bias || !p90 || p90->num < 0 || p90->compare(Rational::integer(100)) >= 0)
    return std::nullopt;
  return MeasuredSet{cells[0].str(), cells[1].str(), cells[2].str(), cells[3].str(), *rows, *ranks, *bias, *p90};
}

std::shared_ptr<const MeasuredSets> MeasuredSets::read(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                                       DiagnosticEngine &diags) {
  auto sets = std::make_shared<MeasuredSets>();
  bool hasHeader = false;
  for (StringRef rest = buffer->getBuffer(); !rest.empty();) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.rtrim();
    if (line.empty() || line.startswith("#"))
      continue;
    std::optional<MeasuredSet> set = hasHeader ? readRow(line) : std::nullopt;
    if (set) {
      sets->sets.push_back(std::move(*set));
    } else if (hasHeader || line != header) {
      diags.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc());
      SMLoc begin = SMLoc::getFromPointer(line.data());
      diags.report(begin, diag::MeasuredRow).range({begin, SMLoc::getFromPointer(line.end())}) << header;
      return nullptr;
    }
    hasHeader = true;
  }
  return sets;
}

namespace {
/// The sets that are equally near to a step.
class Candidates {
public:
  Candidates(llvm::ArrayRef<MeasuredSet> sets, const MeasuredKind &step) : sets(sets), step(step) {}

  /// Of those that `accepts` does, first those of the step's type, the one with the largest error; of equal ones the
  /// first.
  const MeasuredSet *find(llvm::function_ref<bool(const MeasuredSet &)> accepts) const {
    const MeasuredSet *worst = nullptr;
    auto isOfType = [&](const MeasuredSet &set) { return set.type == step.type; };
    for (const MeasuredSet &set : sets)
      if (set.kind == step.kind && accepts(set))
        if (!worst || (isOfType(set) && !isOfType(*worst)) ||
            (isOfType(set) == isOfType(*worst) && set.p90.compare(worst->p90) > 0))
          worst = &set;
    return worst;
  }

private:
  llvm::ArrayRef<MeasuredSet> sets;
  const MeasuredKind &step;
};
} // namespace

const MeasuredSet *MeasuredSets::findNearest(const MeasuredKind &step) const {
  Candidates candidates(sets, step);
  for (StringRef machine : step.machines)
    for (StringRef runtime : step.runtimes)
      if (const MeasuredSet *set =
              candidates.find([&](const MeasuredSet &set) { return set.machine == machine && set.runtime == runtime; }))
        return set;
  for (StringRef runtime : step.runtimes)
    if (const MeasuredSet *set = candidates.find([&](const MeasuredSet &set) { return set.runtime == runtime; }))
      return set;
  for (StringRef machine : step.machines)
    if (const MeasuredSet *set = candidates.find([&](const MeasuredSet &set) { return set.machine == machine; }))
      return set;
  return nullptr;
}
