//===- Breakdown.cpp - of what the costs of plans are made ----------------===//
#include "stage/Report/Breakdown.h"
#include "LaneBoxes.h"
#include "MemoryLook.h"
#include "ShortNumbers.h"
#include "Svg.h"
#include "stage/Support/Escape.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
/// A part of a bar, in ticks or bytes.
struct Part {
  const char *fill;
  std::string name;
  __int128 amount;
};
/// The bars of one kind of cost.
struct Panel {
  std::string title;
  std::string (*format)(__int128);
  std::vector<std::vector<Part>> bars; ///< By plan; of a plan that was refused it is empty.
};

class Painter {
public:
  Painter(const Comparison &comparison, const PictureFrame &frame)
      : comparison(comparison), page(frame.width), title(frame.title) {}
  void print(llvm::raw_ostream &os);

private:
  size_t getNumShown() const { return std::min<size_t>(comparison.plans.size(), 48); }
  std::string getName(const ComparedPlan &plan) const;
  Panel makePanel(std::string title, std::string (*format)(__int128),
                  llvm::function_ref<std::vector<Part>(const PlanCosts &)> list) const;
  std::vector<Part> listMoved(const PlanCosts &costs);
  void addPanel(const Panel &panel);
  void addBar(const std::vector<Part> &bar, __int128 most, int64_t top);

  const Comparison &comparison;
  SvgPage page;
  std::string title;
  int64_t left = 0, plotWidth = 0;
  bool hasNoPanel = true;         ///< Yet.
  std::vector<std::string> moved; ///< Each with a colour of its own.
};
} // namespace

static constexpr std::pair<TimeAccount, const char *> accountLooks[] = {
    {TimeAccount::Products, "#4a7ab5"},  {TimeAccount::Attention, "#8fb8de"}, {TimeAccount::Elementwise, "#8cc2a0"},
    {TimeAccount::Optimizer, "#c9b458"}, {TimeAccount::Overlap, "#b08fc7"},   {TimeAccount::Exposed, "#d6453d"},
    {TimeAccount::Host, "#9c8468"},      {TimeAccount::Bubble, "#d0d0d0"}};
/// Of axes and subjects, in the order in which plans have them.
static constexpr const char *movedFills[] = {"#4a7ab5", "#dd8a3e", "#6aa56e", "#c9564f", "#8f6fb0", "#e0c23f",
                                             "#5da8a6", "#9c7a54", "#d88fb0", "#8d8d8d", "#9ccbf0", "#cfe39a"};

/// For people, what a time account is.
static std::string describeAccount(TimeAccount account) {
  switch (account) {
  case TimeAccount::Exposed:
    return "exposed communication";
  case TimeAccount::Overlap:
    return "slower beside communication";
  default:
    return getName(account).str();
  }
}

static __int128 getSum(llvm::ArrayRef<Part> bar) {
  __int128 sum = 0;
  for (const Part &part : bar)
    sum += part.amount;
  return sum;
}

static std::string formatTicks(__int128 ticks) { return shortenTime(Ticks(ticks)); }
static std::string formatMoved(__int128 bytes) { return shortenBytes(double(bytes)); }

std::string Painter::getName(const ComparedPlan &plan) const {
  std::string values;
  for (auto [name, value] : llvm::zip(comparison.names, plan.values))
    values += (values.empty() ? "" : ", ") + name + " = " + value;
  bool isOneJob = llvm::all_of(comparison.plans, [&](const ComparedPlan &other) { return other.job == plan.job; });
  return values.empty() ? plan.job : isOneJob ? values : plan.job + ": " + values;
}

Panel Painter::makePanel(std::string title, std::string (*format)(__int128),
                         llvm::function_ref<std::vector<Part>(const PlanCosts &)> list) const {
  Panel panel = {std::move(title), format, {}};
  for (const ComparedPlan &plan : llvm::ArrayRef(comparison.plans).take_front(getNumShown()))
    panel.bars.push_back(plan.costs ? list(*plan.costs) : std::vector<Part>());
  return panel;
}

std::vector<Part> Painter::listMoved(const PlanCosts &costs) {
  std::vector<Part> parts;
  for (const PlanParts::Moved &entry : costs.parts.moved) {
    std::string name = entry.axes + " " + stage::getName(entry.subject).str();
    auto found = llvm::find(moved, name);
    size_t number = size_t(found - moved.begin());
    if (found == moved.end())
      moved.push_back(name);
    parts.push_back({movedFills[number % std::size(movedFills)], name, entry.bytes});
  }
  // The same order in all bars.
  llvm::stable_sort(
      parts, [&](const Part &a, const Part &b) { return llvm::find(moved, a.name) < llvm::find(moved, b.name); });
  return parts;
}

void Painter::addBar(const std::vector<Part> &bar, __int128 most, int64_t top) {
  constexpr int64_t height = 16;
  llvm::raw_ostream &os = page.getStream();
  __int128 sum = 0;
  auto at = [&](__int128 amount) { return int64_t(amount * plotWidth * TimeScale::perPixel / most); };
  for (const Part &part : bar) {
    int64_t begin = at(sum), end = at(sum += part.amount);
    if (begin == end)
      continue;
    os << "<rect x=\"" << toPixels(left * TimeScale::perPixel + begin) << "\" y=\"" << top << "\" width=\""
       << toPixels(end - begin) << "\" height=\"" << height << "\" fill=\"" << part.fill
       << "\" stroke=\"#fff\" stroke-width=\".5\"><title>" << escapeXml(part.name) << "</title></rect>\n";
  }
}

void Painter::addPanel(const Panel &panel) {
  __int128 most = 0;
  for (const std::vector<Part> &bar : panel.bars)
    most = std::max(most, getSum(bar));
  bool isFirst = std::exchange(hasNoPanel, false);
  page.addGap(10);
  page.addTitle(panel.title);
  if (!most) {
    page.addLine("none");
    return;
  }
  // Of what is narrower than a pixel everywhere nobody asks for the colour.
  std::vector<LegendEntry> legend;
  for (const std::vector<Part> &bar : panel.bars)
    for (const Part &part : bar)
      if (part.amount * plotWidth >= most &&
          llvm::none_of(legend, [&](const LegendEntry &entry) { return entry.text == part.name; }))
        legend.push_back({part.fill, part.name});
  page.addLegend(legend);
  page.addGap(6);
  for (auto [plan, bar] : llvm::zip(comparison.plans, panel.bars)) {
    int64_t top = page.addPlace(22), baseline = top + 12;
    page.printText(SvgPage::margin, baseline, getName(plan));
    if (!plan.costs) {
      // The reason once, in the first panel.
      std::string text = isFirst ? "refused: " + plan.refusal : "refused";
      std::vector<std::string> lines = wrapText(text, page.getWidth() - left - 3 * SvgPage::margin, SvgPage::textSize);
      page.printText(left, baseline, lines.front() + (lines.size() > 1 ? " ..." : ""),
                     {SvgPage::textSize, SvgPage::Anchor::Start, "#a00"});
      continue;
    }
    addBar(bar, most, top);
    __int128 sum = getSum(bar);
    page.printText(left + plotWidth * int64_t(sum * 1000 / most) / 1000 + 6, baseline,
                   sum ? panel.format(sum) : "no machine", {11, SvgPage::Anchor::Start, "#333"});
  }
}

void Painter::print(llvm::raw_ostream &os) {
  for (const ComparedPlan &plan : llvm::ArrayRef(comparison.plans).take_front(getNumShown()))
    left = std::max(left, estimateWidth(getName(plan), SvgPage::textSize));
  // Names of plans may be long; half of the picture is for bars.
  left = std::min(left + 2 * SvgPage::margin, page.getWidth() / 2);
  plotWidth = page.getWidth() - left - estimateWidth("9.99 GiB", SvgPage::textSize) - 2 * SvgPage::margin;
  page.addTitle(title);
  const PlanTime *first = nullptr;
  bool areOfOne = true;
  for (const ComparedPlan &plan : comparison.plans)
    if (plan.costs && plan.costs->time) {
      first = first ? first : &*plan.costs->time;
      areOfOne &= plan.costs->time->machine == first->machine && plan.costs->time->runtime == first->runtime;
    }
  if (first && areOfOne)
    page.addLine("on " + first->machine + ", runtime " + first->runtime);
  if (getNumShown() < comparison.plans.size())
    page.addLine("drawn are the first " + std::to_string(getNumShown()) + " of " +
                 std::to_string(comparison.plans.size()) + " plans");
  if (first)
    addPanel(makePanel("time of a step, mean over stages", formatTicks, [](const PlanCosts &costs) {
      std::vector<Part> parts;
      for (auto [account, fill] : accountLooks)
        parts.push_back({fill, describeAccount(account), costs.parts.accounts[unsigned(account)]});
      return parts;
    }));
  addPanel(makePanel("communication: bytes that a rank moves in a step, by axes and subject", formatMoved,
                     [&](const PlanCosts &costs) { return listMoved(costs); }));
  addPanel(makePanel("memory of a rank at its peak", formatMoved, [](const PlanCosts &costs) {
    std::vector<Part> parts;
    for (const MemoryLook &look : memoryLooks)
      parts.push_back({look.fill, look.text, costs.parts.peak[look.kind]});
    return parts;
  }));
  page.addGap(8);
  page.print(os);
}

void stage::printBreakdown(llvm::raw_ostream &os, const Comparison &comparison, const PictureFrame &frame) {
  Painter(comparison, frame).print(os);
}
