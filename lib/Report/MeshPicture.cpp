//===- MeshPicture.cpp - who talks to whom, as text -----------------------===//
#include "stage/Report/MeshPicture.h"
#include "stage/IR/text/Text.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace stage;

MeshPicture::MeshPicture(const Report &report, std::vector<MeshLevel> levels)
    : report(report), mesh(report.program->graph->mesh), levels(std::move(levels)),
      pipelineAxis(report.program->graph->pipeline.axis) {
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
    // Of some stages none is among the ranks that are shown.
    strips.addRow({nameKind(kind), llvm::StringRef(strip).contains('#') ? strip : "(of other ranks)"});
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
