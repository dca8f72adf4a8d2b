//===- MeshSvg.cpp - who talks to whom, as SVG ----------------------------===//
//
// Problem: 2,048 ranks have thousands of groups, and a reader can tell ten colours apart.
//
// Algorithm, for each panel:
//   1. Of the axes of its groups as many coordinates are shown as fit (`maxMembers` in all), the longest axis is halved
//      first. Of the other axes, from the inside out, as many as give `maxGroups` groups and `maxDrawnRanks` ranks. Of
//      the pipeline's axis the stages that have such groups are shown.
//   2. The ranks with these coordinates stand in their order, in a box for each node of the machine. Where ranks or
//      nodes are left out there are dots.
//   3. Groups are numbered as they come up, and each number has a colour.
//
//===----------------------------------------------------------------------===//
#include "Svg.h"
#include "stage/IR/text/Text.h"
#include "stage/Report/MeshPicture.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace stage;

/// Colours of groups, on which black letters can be read.
static constexpr const char *fills[] = {"#9ccbf0", "#f5b27a", "#9fd8a8", "#d3c1e6", "#f7dc6f",
                                        "#f2a6a6", "#b8e0dc", "#d9c3a5", "#c8ccd0", "#cfe39a"};
static constexpr int64_t maxGroups = std::size(fills), maxMembers = 32, maxDrawnRanks = 128;

namespace stage {

class MeshSvg {
public:
  MeshSvg(const MeshPicture &picture, const PictureFrame &frame)
      : picture(picture), mesh(picture.mesh), page(frame.width), title(frame.title) {}
  void print(llvm::raw_ostream &os);

private:
  using Kind = MeshPicture::Kind;
  /// Kinds over the same axes: of a pipeline, some stages each.
  struct Panel {
    std::vector<const Kind *> kinds;
    std::vector<std::vector<int64_t>> coordinates; ///< That are shown, by axis.
    std::vector<int64_t> ranks;                    ///< With these.
    const Kind &getFirst() const { return *kinds.front(); }
  };
  /// What all stages do of one operation, subject and phase.
  struct Traffic {
    const TrafficReport *example;
    std::map<unsigned, std::array<__int128, 3>> stages; ///< Count, input bytes, wire bytes.
  };
  std::vector<Panel> collectPanels() const;
  void choose(Panel &panel) const;
  void addHeading();
  void addPanel(Panel &panel);
  void addTraffic(const Panel &panel);
  void addRanks(const Panel &panel);
  std::string describeGroups(const Panel &panel) const;
  std::string describeCut(const Panel &panel) const;
  /// The number of the rank's group in the picture; none: it is in no group.
  std::optional<size_t> findGroup(const Panel &panel, int64_t rank,
                                  std::vector<std::pair<const Kind *, int64_t>> &groups) const;
  /// Ranks of a box: of a node or, without a machine, those that differ on the last axes alone.
  int64_t getBlockSize() const;

  const MeshPicture &picture;
  const Mesh &mesh;
  SvgPage page;
  std::string title;
};

} // namespace stage

std::vector<MeshSvg::Panel> MeshSvg::collectPanels() const {
  std::vector<Panel> panels;
  for (const Kind &kind : picture.kinds) {
    auto found = llvm::find_if(panels, [&](const Panel &panel) {
      const Kind &first = panel.getFirst();
      return first.axes == kind.axes && first.isSend == kind.isSend && first.members == kind.members;
    });
    if (found == panels.end())
      found = panels.insert(panels.end(), Panel());
    found->kinds.push_back(&kind);
  }
  for (Panel &panel : panels)
    choose(panel);
  return panels;
}

void MeshSvg::choose(Panel &panel) const {
  AxisSet set = panel.getFirst().set;
  size_t numAxes = mesh.getAxes().size();
  // Coordinates that have a part in some group.
  for (AxisId axis = 0; axis < numAxes; ++axis) {
    std::set<int64_t> useful;
    if (axis == picture.pipelineAxis)
      for (const Kind *kind : panel.kinds)
        useful.insert(kind->stages.begin(), kind->stages.end());
    else
      for (int64_t coordinate = 0; coordinate < std::min(mesh[axis].size, maxMembers * 2); ++coordinate)
        useful.insert(coordinate);
    panel.coordinates.emplace_back(useful.begin(), useful.end());
  }
  auto count = [&] {
    int64_t members = 1;
    for (AxisId axis = 0; axis < numAxes; ++axis)
      members *= set >> axis & 1 ? int64_t(panel.coordinates[axis].size()) : 1;
    return members;
  };
  while (count() > maxMembers) {
    std::vector<int64_t> *longest = nullptr;
    for (AxisId axis = 0; axis < numAxes; ++axis)
      if (set >> axis & 1 && (!longest || panel.coordinates[axis].size() > longest->size()))
        longest = &panel.coordinates[axis];
    longest->resize((longest->size() + 1) / 2);
  }
  int64_t room = std::min(maxGroups / int64_t(panel.kinds.size()), maxDrawnRanks / count());
  room = std::max<int64_t>(1, room);
  for (AxisId axis = AxisId(numAxes); axis-- > 0;)
    if (std::vector<int64_t> &shown = panel.coordinates[axis]; !(set >> axis & 1)) {
      shown.resize(std::min<size_t>(shown.size(), size_t(room)));
      room /= int64_t(shown.size());
    }
  panel.ranks = {0};
  for (AxisId axis = 0; axis < numAxes; ++axis) {
    std::vector<int64_t> longer;
    for (int64_t rank : panel.ranks)
      for (int64_t coordinate : panel.coordinates[axis])
        longer.push_back(rank + coordinate * mesh.getStride(axis));
    panel.ranks = std::move(longer);
  }
  llvm::sort(panel.ranks);
}

std::optional<size_t> MeshSvg::findGroup(const Panel &panel, int64_t rank,
                                         std::vector<std::pair<const Kind *, int64_t>> &groups) const {
  for (const Kind *kind : panel.kinds)
    if (picture.takesPart(*kind, rank)) {
      std::pair<const Kind *, int64_t> group = {kind, picture.getGroup(*kind, rank)};
      auto found = llvm::find(groups, group);
      if (found == groups.end())
        found = groups.insert(groups.end(), group);
      return size_t(found - groups.begin());
    }
  return std::nullopt;
}

int64_t MeshSvg::getBlockSize() const {
  if (!picture.levels.empty())
    return picture.levels.front().ranks;
  constexpr int64_t most = 8;
  int64_t size = 1;
  for (AxisId axis = AxisId(mesh.getAxes().size()); axis-- > 0 && size * mesh[axis].size <= most;)
    size *= mesh[axis].size;
  return size == 1 ? most : size;
}

std::string MeshSvg::describeGroups(const Panel &panel) const {
  const Kind &kind = panel.getFirst();
  int64_t groups = 0;
  for (const Kind *of : panel.kinds)
    groups += picture.countGroups(*of);
  int64_t members = kind.isSend ? mesh.getGroupSize(kind.set) : kind.members;
  constexpr size_t maxShown = 40;
  return kind.axes + (kind.isSend ? ": messages along " : ": ") + formatCount(groups) +
         (kind.isSend   ? (groups == 1 ? " line of " : " lines of ")
          : groups == 1 ? " group of "
                        : " groups of ") +
         formatCount(members) + " ranks, the first: " + picture.listMembers(kind, picture.getFirst(kind), maxShown);
}

std::string MeshSvg::describeCut(const Panel &panel) const {
  std::string text;
  bool isOne = true;
  for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis)
    if (int64_t size = mesh[axis].size, shown = int64_t(panel.coordinates[axis].size()); shown < size) {
      isOne &= text.empty() && shown == 1;
      text += (text.empty() ? "only " : ", ") + formatCount(shown) + " of " + formatCount(size) + " along " +
              mesh[axis].name;
    }
  return text.empty() ? text : text + (isOne ? " is drawn" : " are drawn");
}

/// `stages 0-2: 16 x all_reduce of activations in forward, 8.00 KiB input, 8.00 KiB on the wire`.
void MeshSvg::addTraffic(const Panel &panel) {
  std::vector<Traffic> all;
  for (const Kind *kind : panel.kinds)
    for (const TrafficRow &row : kind->rows) {
      const TrafficReport &traffic = *row.traffic;
      auto found = llvm::find_if(all, [&](const Traffic &other) {
        return describeOperation(*other.example) == describeOperation(traffic) &&
               other.example->subject == traffic.subject && other.example->phaseName == traffic.phaseName;
      });
      if (found == all.end())
        found = all.insert(all.end(), Traffic{&traffic, {}});
      for (unsigned stage = row.first; stage <= row.last; ++stage) {
        auto &sums = found->stages[stage];
        sums[0] += traffic.count;
        sums[1] += traffic.bytes;
        sums[2] += traffic.getMoved();
      }
    }
  for (const Traffic &traffic : all) {
    std::vector<uint32_t> stages;
    std::array<__int128, 3> least = traffic.stages.begin()->second, most = least;
    for (const auto &[stage, sums] : traffic.stages) {
      stages.push_back(stage);
      for (size_t i = 0; i < sums.size(); ++i) {
        least[i] = std::min(least[i], sums[i]);
        most[i] = std::max(most[i], sums[i]);
      }
    }
    std::string text;
    if (picture.report.stages.size() > 1)
      text = (stages.size() == 1 ? "stage " : "stages ") + formatRanks(stages) + ": ";
    page.addLine(text + formatRange(formatCount(least[0]), formatCount(most[0])) + " x " +
                 describeOperation(*traffic.example).str() + " of " + getName(traffic.example->subject).str() + " in " +
                 traffic.example->phaseName.str() + ", " + formatRange(formatBytes(least[1]), formatBytes(most[1])) +
                 " input, " + formatRange(formatBytes(least[2]), formatBytes(most[2])) + " on the wire");
  }
  if (panel.getFirst().isSend)
    page.addLine(picture.describeMessages());
}

void MeshSvg::addRanks(const Panel &panel) {
  constexpr int64_t cellHeight = 18, fontSize = 10, gap = 10, nameHeight = 13;
  int64_t cellWidth = 8 + estimateWidth(std::to_string(panel.ranks.back()), fontSize), blockSize = getBlockSize();
  bool hasNodes = !picture.levels.empty();
  std::vector<std::pair<const Kind *, int64_t>> groups;
  SvgPage::Style number = {fontSize, SvgPage::Anchor::Middle},
                 name = {SvgPage::smallSize, SvgPage::Anchor::Start, "#555"};
  int64_t x = SvgPage::margin + 2, rowHeight = cellHeight + (hasNodes ? nameHeight : 0) + 6,
          top = page.addPlace(rowHeight);
  int64_t right = page.getWidth() - SvgPage::margin;
  int64_t lastBlock = -1;
  std::string firstGroup; // drawn over the others
  llvm::raw_string_ostream frames(firstGroup);
  for (size_t begin = 0; begin < panel.ranks.size();) {
    int64_t block = panel.ranks[begin] / blockSize;
    size_t end = begin;
    while (end < panel.ranks.size() && panel.ranks[end] / blockSize == block)
      ++end;
    // A block that is wider than the picture goes on in the next line.
    bool isCut = end - begin > 1 && int64_t(end - begin) < std::min(blockSize, mesh.getNumRanks());
    bool skips = lastBlock >= 0 && block != lastBlock + 1;
    int64_t blockWidth = int64_t(end - begin) * cellWidth + (isCut ? cellWidth / 2 : 0);
    if (skips && x + 16 <= right) {
      page.printText(x, top + rowHeight - 10, "...", {fontSize, SvgPage::Anchor::Start, "#555"});
      x += 20;
    }
    if (x > SvgPage::margin + 2 && x + blockWidth > right) {
      x = SvgPage::margin + 2;
      top = page.addPlace(rowHeight);
    }
    if (hasNodes)
      page.printText(x, top + 9, picture.levels.front().name + " " + std::to_string(block), name);
    int64_t cellTop = top + (hasNodes ? nameHeight : 0), frameLeft = x;
    auto printFrame = [&](int64_t from, int64_t to) {
      if (hasNodes)
        page.getStream() << "<rect x=\"" << from - 2 << "\" y=\"" << cellTop - 2 << "\" width=\"" << to - from + 4
                         << "\" height=\"" << cellHeight + 4 << "\" fill=\"none\" stroke=\"#333\" rx=\"2\"/>\n";
    };
    for (; begin < end; ++begin) {
      if (x + cellWidth > right) {
        printFrame(frameLeft, x);
        x = frameLeft = SvgPage::margin + 2;
        top = page.addPlace(rowHeight);
        cellTop = top + (hasNodes ? nameHeight : 0);
      }
      int64_t rank = panel.ranks[begin];
      std::optional<size_t> group = findGroup(panel, rank, groups);
      page.printRect(x, cellTop, cellWidth, cellHeight, group ? fills[*group % maxGroups] : "#fff", "#999");
      page.printText(x + cellWidth / 2, cellTop + 13, std::to_string(rank), number);
      if (group == size_t(0))
        frames << "<rect x=\"" << x << "\" y=\"" << cellTop << "\" width=\"" << cellWidth << "\" height=\""
               << cellHeight << "\"/>\n";
      x += cellWidth;
    }
    if (isCut && x + cellWidth / 2 <= right) {
      page.printText(x + 2, cellTop + 13, "..", {fontSize, SvgPage::Anchor::Start, "#555"});
      x += cellWidth / 2;
    }
    printFrame(frameLeft, x);
    x += gap;
    lastBlock = block;
  }
  if ((lastBlock + 1) * blockSize < mesh.getNumRanks() && x + 16 <= right)
    page.printText(x, top + rowHeight - 10, "...", {fontSize, SvgPage::Anchor::Start, "#555"});
  page.getStream() << "<g fill=\"none\" stroke=\"#000\" stroke-width=\"1.5\">\n" << frames.str() << "</g>\n";
}

void MeshSvg::addHeading() {
  page.addTitle(title);
  page.addLine(picture.describeMesh());
  if (picture.kinds.empty()) {
    page.addLine("no rank talks to another one");
    return;
  }
  page.addLine("counts and bytes are those of one rank in a step");
  std::string text = "ranks of a group have one colour, the first group has black frames";
  if (!picture.levels.empty()) {
    text += "; boxes are blocks of '" + picture.levels.front().name + "', " +
            formatCount(picture.levels.front().ranks) + (picture.levels.front().ranks == 1 ? " rank" : " ranks") +
            " each";
    for (const MeshLevel &level : llvm::ArrayRef(picture.levels).drop_front())
      if (level.ranks < mesh.getNumRanks())
        text += ", and '" + level.name + "' has " + formatCount(level.ranks);
  }
  page.addLine(text);
}

void MeshSvg::addPanel(Panel &panel) {
  page.addGap(12);
  page.addTitle(describeGroups(panel));
  addTraffic(panel);
  if (std::string cut = describeCut(panel); !cut.empty())
    page.addLine(cut);
  page.addGap(6);
  addRanks(panel);
}

void MeshSvg::print(llvm::raw_ostream &os) {
  addHeading();
  for (Panel &panel : collectPanels())
    addPanel(panel);
  page.addGap(8);
  page.print(os);
}

void MeshPicture::printSvg(llvm::raw_ostream &os, const PictureFrame &frame) const { MeshSvg(*this, frame).print(os); }
