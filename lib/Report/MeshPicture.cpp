//===- MeshPicture.cpp - who talks to whom, per axis ----------------------===//
#include "stage/Report/MeshPicture.h"
#include "stage/IR/text/Text.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace stage;

MeshPicture::MeshPicture(const Report &report)
    : report(report), mesh(report.program->graph->mesh), pipelineAxis(report.program->graph->pipeline.axis) {
  collect();
}

/// Rows of the report by who takes part in them, in the order in which the program first uses them.
void MeshPicture::collect() {
  for (const TrafficRow &row : collectTraffic(report)) {
    const TrafficReport &traffic = *row.traffic;
    // What goes to another part of a workload goes to another mesh.
    if (traffic.groupSize < 2 || traffic.toPart)
      continue;
    std::vector<unsigned> stages(traffic.stages.begin(), traffic.stages.end());
    auto found = llvm::find_if(kinds, [&](const Kind &kind) {
      bool isRestricted = !traffic.stages.empty() || mesh.getGroupSize(kind.set) != kind.members;
      return kind.isSend == traffic.isSend && kind.axes == llvm::join(traffic.axisNames, ", ") &&
             kind.members == traffic.groupSize && (kind.isSend || !isRestricted || kind.stages == stages);
    });
    if (found == kinds.end()) {
      found = kinds.insert(kinds.end(), Kind());
      found->axes = llvm::join(traffic.axisNames, ", ");
      found->set = toSet(traffic.axes);
      found->isSend = traffic.isSend;
      found->members = traffic.groupSize;
      found->stages = stages;
    }
    found->rows.push_back(row);
    // Groups within stages are where they are used; those across stages have the stages that the program says.
    if (traffic.stages.empty())
      for (unsigned stage = row.first; stage <= row.last; ++stage)
        if (!llvm::is_contained(found->stages, stage))
          found->stages.push_back(stage);
    llvm::sort(found->stages);
  }
}

bool MeshPicture::takesPart(const Kind &kind, int64_t rank) const {
  return !pipelineAxis || llvm::is_contained(kind.stages, unsigned(mesh.getCoordinate(rank, *pipelineAxis)));
}

int64_t MeshPicture::getGroup(const Kind &kind, int64_t rank) const {
  int64_t number = 0;
  for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis)
    if (!(kind.set >> axis & 1))
      number = number * mesh[axis].size + mesh.getCoordinate(rank, axis);
  return number;
}

int64_t MeshPicture::countGroups(const Kind &kind) const {
  int64_t groups = mesh.getNumRanks() / mesh.getGroupSize(kind.set);
  bool isInStages = pipelineAxis && !(kind.set >> *pipelineAxis & 1);
  return isInStages ? groups / mesh[*pipelineAxis].size * int64_t(kind.stages.size()) : groups;
}

std::string MeshPicture::listMembers(const Kind &kind, int64_t rank, size_t maxShown) const {
  std::vector<uint32_t> members;
  // Coordinates on the axes of the kind, as one counts.
  int64_t base = rank;
  for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis)
    if (kind.set >> axis & 1)
      base -= mesh.getCoordinate(rank, axis) * mesh.getStride(axis);
  int64_t size = mesh.getGroupSize(kind.set);
  constexpr int64_t maxMembers = 1 << 20; // enough, and soon done
  for (int64_t number = 0; number < std::min(size, maxMembers); ++number) {
    int64_t member = base, rest = number;
    for (AxisId axis = AxisId(mesh.getAxes().size()); axis-- > 0;)
      if (kind.set >> axis & 1) {
        member += rest % mesh[axis].size * mesh.getStride(axis);
        rest /= mesh[axis].size;
      }
    if (takesPart(kind, member))
      members.push_back(uint32_t(member));
  }
  std::string text = formatRanks(members);
  if (text.size() <= maxShown && size <= maxMembers)
    return text;
  text = text.substr(0, maxShown);
  return text.substr(0, text.rfind(',')) + ", ...";
}

int64_t MeshPicture::getFirst(const Kind &kind) const {
  return pipelineAxis ? kind.stages.front() * mesh.getStride(*pipelineAxis) : 0;
}

int64_t MeshPicture::getLast(const Kind &kind) const {
  int64_t last = mesh.getNumRanks() - 1;
  if (pipelineAxis)
    last -= (mesh[*pipelineAxis].size - 1 - kind.stages.back()) * mesh.getStride(*pipelineAxis);
  return last;
}

MeshPicture::Window MeshPicture::choose(int64_t maxRanks) const {
  Window window;
  int64_t shown = 1;
  for (const Axis &axis : mesh.getAxes()) {
    window.sizes.push_back(axis.size);
    shown *= axis.size;
  }
  // Halves the longest axis until all fit; each keeps two, as long as that is possible.
  while (shown > maxRanks) {
    auto longest = std::max_element(window.sizes.begin(), window.sizes.end());
    shown = shown / *longest * ((*longest + 1) / 2);
    *longest = (*longest + 1) / 2;
  }
  for (int64_t number = 0; number < shown; ++number) {
    int64_t rank = 0, rest = number;
    for (size_t axis = window.sizes.size(); axis-- > 0;) {
      rank += rest % window.sizes[axis] * mesh.getStride(AxisId(axis));
      rest /= window.sizes[axis];
    }
    window.ranks.push_back(rank);
  }
  return window;
}

std::string MeshPicture::describeMesh() const {
  std::string text;
  for (const Axis &axis : mesh.getAxes())
    text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
  int64_t ranks = mesh.getNumRanks();
  return formatCount(ranks) + (ranks == 1 ? " rank" : " ranks") + (text.empty() ? "" : ": " + text);
}

std::string MeshPicture::describeMessages() const {
  const Program &program = *report.program;
  std::set<std::pair<unsigned, unsigned>> pairs;
  for (const StageProgram &stage : program.stages)
    for (const UnitTemplate &unit : stage.templates)
      for (const ProgramItem &item : unit.items)
        if (item.kind == ProgramItem::Kind::Send && !item.channel)
          pairs.insert(std::minmax(stage.stage, unsigned(program.virtualStages[item.peer].first)));
  constexpr size_t maxShown = 16;
  size_t number = 0;
  std::string text = "messages go between stages ";
  for (auto [first, second] : pairs) {
    if (number == maxShown)
      return text + ", ...";
    text += (number++ ? ", " : "") + std::to_string(first) + " and " + std::to_string(second);
  }
  return text;
}

std::string MeshPicture::describeCut(const Window &window) const {
  std::string text;
  for (size_t axis = 0; axis < window.sizes.size(); ++axis)
    if (int64_t size = mesh[AxisId(axis)].size; window.sizes[axis] < size)
      text += (text.empty() ? "only " : ", ") + std::to_string(window.sizes[axis]) + " of " + std::to_string(size) +
              " along " + mesh[AxisId(axis)].name;
  return text;
}

std::string MeshPicture::describeStages(const TrafficRow &row) {
  return row.first == row.last ? std::to_string(row.first) : std::to_string(row.first) + "-" + std::to_string(row.last);
}

void MeshPicture::printText(llvm::raw_ostream &os) const {
  os << "job " << report.job << ", " << describeMesh() << '\n';
  if (kinds.empty()) {
    os << "no rank talks to another one\n";
    return;
  }
  Table groups({{"axes", Table::Left},
                {"members", Table::Right},
                {"groups", Table::Right},
                {"ranks of the first group", Table::Left},
                {"ranks of the last group", Table::Left}},
               2);
  auto nameKind = [](const Kind &kind) { return kind.axes + (kind.isSend ? " (messages)" : ""); };
  for (const Kind &kind : kinds) {
    int64_t members = kind.isSend ? mesh.getGroupSize(kind.set) : kind.members;
    groups.addRow({nameKind(kind), formatCount(members), formatCount(countGroups(kind)),
                   listMembers(kind, getFirst(kind)), listMembers(kind, getLast(kind))});
  }
  os << '\n';
  groups.print(os);

  Window window = choose(/*maxRanks=*/128);
  std::string cut = describeCut(window);
  os << "\nranks of the first group (#) among all" << (cut.empty() ? "" : "; " + cut) << '\n';
  Table strips({{"", Table::Left}, {"", Table::Left}}, 2);
  for (const Kind &kind : kinds) {
    std::string strip;
    int64_t first = getGroup(kind, getFirst(kind));
    for (int64_t rank : window.ranks)
      strip += takesPart(kind, rank) && getGroup(kind, rank) == first ? '#' : '.';
    strips.addRow({nameKind(kind), strip});
  }
  strips.print(os, /*titles=*/false);

  os << "\nwhat a rank puts in, and moves, in a step\n";
  Table traffic({{"axes", Table::Left},
                 {"operation", Table::Left},
                 {"carries", Table::Left},
                 {"phase", Table::Left},
                 {"stage", Table::Left},
                 {"count", Table::Right},
                 {"bytes put in", Table::Right},
                 {"bytes moved", Table::Right},
                 {"exactly", Table::Right}},
                2);
  for (const Kind &kind : kinds)
    for (const TrafficRow &row : kind.rows)
      traffic.addRow({nameKind(kind), describeOperation(*row.traffic).str(), getName(row.traffic->subject).str(),
                      row.traffic->phaseName.str(), describeStages(row), formatCount(row.traffic->count),
                      formatBytes(row.traffic->bytes), formatBytes(row.traffic->getMoved()),
                      formatCount(row.traffic->getMoved())});
  traffic.print(os);
  if (llvm::any_of(kinds, [](const Kind &kind) { return kind.isSend; }))
    os << "  " << describeMessages() << '\n';
}

//===----------------------------------------------------------------------===//
// SVG
//===----------------------------------------------------------------------===//

/// Colours of neighbouring groups, on which black letters can be read.
static constexpr const char *fills[] = {"#9ccbf0", "#f5b27a", "#9fd8a8", "#d3c1e6", "#f7dc6f",
                                        "#f2a6a6", "#b8e0dc", "#d9c3a5", "#c8ccd0", "#cfe39a"};

/// Pixels.
static constexpr int64_t left = 8, cellHeight = 20;

void MeshPicture::printSvg(llvm::raw_ostream &os) const {
  constexpr int64_t lineHeight = 17, maxRanks = 256, maxColumns = 32, minWidth = 760;
  Window window = choose(maxRanks);
  // A row has the ranks of the last axes, as many axes as fit.
  int64_t columns = 1;
  for (size_t axis = window.sizes.size(); axis-- > 0 && columns * window.sizes[axis] <= maxColumns;)
    columns *= window.sizes[axis];
  if (columns == 1)
    columns = std::min<int64_t>(maxColumns, int64_t(window.ranks.size()));
  int64_t numRows = (int64_t(window.ranks.size()) + columns - 1) / columns;
  int64_t cellWidth = 10 + 7 * int64_t(std::to_string(window.ranks.back()).size());
  int64_t height = 76;
  for (const Kind &kind : kinds)
    height += 2 * lineHeight + lineHeight * int64_t(kind.rows.size() + kind.isSend) + 8 + numRows * cellHeight;
  int64_t width = std::max(minWidth, 2 * left + columns * cellWidth);

  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height << "\" viewBox=\"0 0 "
     << width << ' ' << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
     << "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  auto printLine = [&](int64_t y, const std::string &text, bool isTitle = false) {
    os << "<text x=\"" << left << "\" y=\"" << y << "\"" << (isTitle ? " font-size=\"14\" font-weight=\"bold\"" : "")
       << '>' << escapeXml(text) << "</text>\n";
  };
  printLine(20, "job " + report.job, /*isTitle=*/true);
  std::string cut = describeCut(window);
  printLine(38, describeMesh() + (cut.empty() ? "" : "; " + cut));
  if (kinds.empty())
    printLine(56, "no rank talks to another one");
  else
    printLine(56, "ranks of a group have one colour (colours repeat after ten groups); the first group has frames");
  int64_t y = 64;
  for (const Kind &kind : kinds) {
    y += 2 * lineHeight;
    int64_t members = kind.isSend ? mesh.getGroupSize(kind.set) : kind.members, groups = countGroups(kind);
    printLine(y,
              kind.axes + (kind.isSend ? ": messages along " : ": ") + formatCount(groups) +
                  (kind.isSend   ? (groups == 1 ? " line of " : " lines of ")
                   : groups == 1 ? " group of "
                                 : " groups of ") +
                  formatCount(members) + " ranks, the first: " + listMembers(kind, getFirst(kind), /*maxShown=*/40),
              /*isTitle=*/true);
    for (const TrafficRow &row : kind.rows) {
      y += lineHeight;
      const TrafficReport &traffic = *row.traffic;
      std::string stages =
          report.stages.size() == 1 ? "" : (row.first == row.last ? "stage " : "stages ") + describeStages(row) + ": ";
      printLine(y, stages + formatCount(traffic.count) + " x " + describeOperation(traffic).str() + " of " +
                       getName(traffic.subject).str() + " in " + traffic.phaseName.str() + ", " +
                       formatBytes(traffic.bytes) + " put in, " + formatBytes(traffic.getMoved()) + " moved by a rank");
    }
    if (kind.isSend)
      printLine(y += lineHeight, describeMessages());
    y += 8;
    printRanks(os, window, kind, columns, cellWidth, y);
    y += numRows * cellHeight;
  }
  os << "</svg>\n";
}

/// Ranks that take no part are white.
void MeshPicture::printRanks(llvm::raw_ostream &os, const Window &window, const Kind &kind, int64_t columns,
                             int64_t cellWidth, int64_t top) const {
  int64_t first = getGroup(kind, getFirst(kind));
  auto getX = [&](size_t number) { return left + int64_t(number) % columns * cellWidth; };
  auto getY = [&](size_t number) { return top + int64_t(number) / columns * cellHeight; };
  auto printCells = [&](bool isFirst, const char *attributes) {
    os << "<g " << attributes << ">\n";
    for (size_t number = 0; number < window.ranks.size(); ++number) {
      int64_t rank = window.ranks[number], group = getGroup(kind, rank);
      bool isMember = takesPart(kind, rank);
      if ((isMember && group == first) != isFirst)
        continue;
      os << "<rect x=\"" << getX(number) << "\" y=\"" << getY(number) << "\" width=\"" << cellWidth << "\" height=\""
         << cellHeight << "\" fill=\"" << (isMember ? fills[group % std::size(fills)] : "#fff") << "\"/>\n";
    }
    os << "</g>\n";
  };
  printCells(/*isFirst=*/false, "stroke=\"#999\" stroke-width=\".5\"");
  printCells(/*isFirst=*/true, "stroke=\"#000\" stroke-width=\"2\"");
  os << "<g text-anchor=\"middle\">\n";
  for (size_t number = 0; number < window.ranks.size(); ++number)
    os << "<text x=\"" << getX(number) + cellWidth / 2 << "\" y=\"" << getY(number) + 14 << "\">"
       << window.ranks[number] << "</text>\n";
  os << "</g>\n";
}
