//===- LayerPicture.cpp - how the tensors of a layer are split ------------===//
#include "stage/Report/LayerPicture.h"
#include "Svg.h"
#include "stage/IR/text/Text.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace stage;

namespace {
/// Of axes: the part of one rank, and the rest of the dim.
struct AxisFill {
  const char *dark, *light;
};
constexpr AxisFill axisFills[] = {{"#6fa8dc", "#dcebf8"}, {"#f0994d", "#fce5d0"}, {"#74b87f", "#dcf0df"},
                                  {"#b494d4", "#ece2f5"}, {"#e0c23f", "#faf2cc"}, {"#e08080", "#f9dede"},
                                  {"#6cc0b8", "#d9f1ee"}, {"#b89a70", "#efe6d9"}};
constexpr const char *wholeFill = "#f4f4f4", *partialFill = "#d6453d", *frame = "#777";

class Painter {
public:
  Painter(const Graph &graph, const LayerOps &layer, const PictureFrame &frame)
      : graph(graph), layer(layer), page(frame.width), title(frame.title) {}
  void print(llvm::raw_ostream &os);

private:
  static constexpr int64_t opLeft = SvgPage::margin, fontSize = 11, cellHeight = 16, lineHeight = 21;
  int64_t getResultLeft() const { return 190; }
  int64_t getParamLeft() const { return getResultLeft() + (page.getWidth() - getResultLeft()) * 55 / 100; }

  const AxisFill &getFill(llvm::ArrayRef<PlacedAxis> axes);
  std::string nameAxes(llvm::ArrayRef<PlacedAxis> axes) const {
    return llvm::join(listAxisNames(graph.mesh, axes), ", ");
  }
  std::string getName(const Value &value) const;
  std::string getBytes(const Value &value) const;
  static std::string getOpName(const Op &op);
  std::string describeOp(const Op &op) const;
  std::string describeOperands(const Op &op) const;
  /// Returns where it ends.
  int64_t printTensor(const Value &value, int64_t x, int64_t top, int64_t right);
  static constexpr int64_t nameWidth = 76;
  void addRow(const Op &op);
  void addOtherPhase(const LayerOps::Phase &phase);
  void collectAxes();

  const Graph &graph;
  const LayerOps &layer;
  SvgPage page;
  std::string title;
  std::map<AxisId, size_t> colours; ///< By axis, in the order in which they split something.
};
} // namespace

const AxisFill &Painter::getFill(llvm::ArrayRef<PlacedAxis> axes) {
  return axisFills[colours.try_emplace(axes.front().id, colours.size()).first->second % std::size(axisFills)];
}

std::string Painter::getOpName(const Op &op) { return op.def ? op.def->name : stage::getName(op.kind).str(); }

/// Without the layer's own path.
std::string Painter::getName(const Value &value) const {
  llvm::StringRef path = value.path;
  llvm::StringRef prefix = llvm::StringRef(layer.path).split('[').first;
  if (path.size() > prefix.size() && path.startswith(prefix) && path[prefix.size()] == '.')
    path = path.drop_front(prefix.size() + 1);
  return path.str();
}

std::string Painter::getBytes(const Value &value) const {
  SizeValue bytes = evaluateCount(getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding), graph.binding);
  return bytes ? formatBytes(bytes.value.num) : "";
}

int64_t Painter::printTensor(const Value &value, int64_t x, int64_t top, int64_t right) {
  struct Cell {
    std::string label;
    llvm::ArrayRef<PlacedAxis> axes;
    int64_t width;
  };
  std::vector<Cell> cells;
  int64_t width = 0;
  for (unsigned number = 0; number < value.type.getNumDims(); ++number) {
    const Extent &extent = value.type.shape[number];
    llvm::ArrayRef<PlacedAxis> axes;
    if (number < value.sharding.dims.size())
      axes = value.sharding.dims[number];
    // `KV` of `Mamba2.KV`.
    std::string label = extent.dim ? extent.dim->name.substr(extent.dim->name.rfind('.') + 1) : extent.size.str();
    if (!axes.empty())
      label += " / " + nameAxes(axes);
    cells.push_back({label, axes, std::max<int64_t>(22, estimateWidth(label, fontSize) + 6)});
    width += cells.back().width;
  }
  std::string bytes = getBytes(value), name = getName(value), more;
  if (value.sharding.partial)
    more = "partial " + nameAxes(toList(value.sharding.partial));
  else if (!value.sharding.flat.empty())
    more = "flat " + nameAxes(value.sharding.flat);
  // A name gives way where there is no room for it all.
  int64_t room = right - x - width - estimateWidth(bytes + more, fontSize) - 24;
  if (estimateWidth(name, fontSize) > room)
    name = room < 30 ? "" : name.substr(0, size_t(std::max<int64_t>(1, room / 7 - 2))) + "..";
  page.printText(x, top + 12, name, {fontSize});
  // Dims stand one below the other as far as names let them.
  x += std::max<int64_t>(std::clamp<int64_t>(room, 0, nameWidth), name.empty() ? 0 : estimateWidth(name, fontSize) + 4);
  // Flat storage cuts rows of all dims together: the dark part is that of the tensor.
  llvm::ArrayRef<PlacedAxis> flat(value.sharding.flat);
  if (!flat.empty() && width) {
    int64_t parts = std::max<int64_t>(1, graph.mesh.getGroupSize(toSet(flat)));
    page.printRect(x, top, width, cellHeight, getFill(flat).light);
    page.printRect(x, top, std::max<int64_t>(3, width / parts), cellHeight, getFill(flat).dark);
  }
  for (const Cell &cell : cells) {
    if (cell.axes.empty()) {
      page.printRect(x, top, cell.width, cellHeight, flat.empty() ? wholeFill : "none", frame);
    } else {
      const AxisFill &fill = getFill(cell.axes);
      int64_t parts = graph.mesh.getGroupSize(toSet(cell.axes));
      page.printRect(x, top, cell.width, cellHeight, fill.light, frame);
      page.printRect(x, top, std::max<int64_t>(3, cell.width / std::max<int64_t>(1, parts)), cellHeight, fill.dark,
                     nullptr);
    }
    page.printText(x + cell.width / 2, top + 12, cell.label, {fontSize, SvgPage::Anchor::Middle});
    x += cell.width;
  }
  x += 6;
  if (!more.empty()) {
    page.printText(x, top + 12, more,
                   {fontSize, SvgPage::Anchor::Start, value.sharding.partial ? partialFill : "#333"});
    x += estimateWidth(more, fontSize) + 6;
  }
  page.printText(x, top + 12, bytes, {fontSize, SvgPage::Anchor::Start, "#777"});
  return x + estimateWidth(bytes, fontSize);
}

std::string Painter::describeOp(const Op &op) const {
  std::string text = getOpName(op);
  if (isReshard(op.kind) && !op.axes.empty())
    text += " over " + nameAxes(op.axes);
  return text;
}

/// `of x, attn.result`: activations alone.
std::string Painter::describeOperands(const Op &op) const {
  std::vector<std::string> names;
  for (const Value *operand : op.getOperands())
    if (!operand->getOp() || !isState(operand->getOp()->kind))
      if (std::string name =
              operand->path.empty() && operand->getOp() ? getOpName(*operand->getOp()) : getName(*operand);
          !name.empty() && !llvm::is_contained(names, name))
        names.push_back(name);
  return names.empty() ? "" : "of " + llvm::join(names, ", ");
}

void Painter::addRow(const Op &op) {
  std::vector<const Value *> results, params;
  for (const auto &result : op.getResults())
    if (!result->getUses().empty())
      results.push_back(result.get());
  for (const Value *operand : op.getOperands())
    if (operand->getOp() && isState(operand->getOp()->kind) && !llvm::is_contained(params, operand))
      params.push_back(operand);
  size_t numLines = std::max<size_t>({1, results.size(), params.size()});
  std::vector<std::string> operands = wrapText(describeOperands(op), getResultLeft() - opLeft - 8, SvgPage::smallSize);
  int64_t height = std::max(int64_t(numLines) * lineHeight, 18 + 11 * int64_t(operands.size())) + 4;
  int64_t top = page.addPlace(height);
  bool isMessage = isCommunication(op.kind);
  if (isMessage)
    page.printRect(opLeft - 4, top - 2, page.getWidth() - 2 * opLeft + 8, height - 2,
                   op.axes.empty() ? wholeFill : getFill(op.axes).light);
  page.printText(opLeft, top + 12, describeOp(op), {fontSize, SvgPage::Anchor::Start, nullptr, isMessage});
  for (size_t line = 0; line < operands.size(); ++line)
    page.printText(opLeft, top + 24 + 11 * int64_t(line), operands[line],
                   {SvgPage::smallSize, SvgPage::Anchor::Start, "#555"});
  int64_t resultRight = params.empty() ? page.getWidth() - SvgPage::margin : getParamLeft() - 8;
  for (size_t line = 0; line < results.size(); ++line)
    printTensor(*results[line], getResultLeft(), top + int64_t(line) * lineHeight, resultRight);
  for (size_t line = 0; line < params.size(); ++line)
    printTensor(*params[line], getParamLeft(), top + int64_t(line) * lineHeight, page.getWidth() - SvgPage::margin);
}

/// `backward: 4 x all_gather over tp, 2 x reduce_scatter over tp`.
void Painter::addOtherPhase(const LayerOps::Phase &phase) {
  std::vector<std::pair<std::string, unsigned>> counts;
  for (const Op *op : phase.ops)
    if (isCommunication(op->kind)) {
      std::string text = describeOp(*op);
      auto found = llvm::find_if(counts, [&](const auto &entry) { return entry.first == text; });
      if (found == counts.end())
        counts.emplace_back(text, 1);
      else
        ++found->second;
    }
  std::vector<std::string> texts;
  for (const auto &[text, count] : counts)
    texts.push_back(std::to_string(count) + " x " + text);
  page.addLine(stage::getName(phase.kind).str() + ": " + (texts.empty() ? "no collectives" : llvm::join(texts, ", ")));
}

/// In the order of the mesh, so that colours do not depend on which op comes first.
void Painter::collectAxes() {
  AxisSet used = 0;
  for (const Op *op : layer.phases.front().ops) {
    used |= toSet(op->axes);
    for (const auto &result : op->getResults())
      used |= result->sharding.getSharded() | result->sharding.partial;
  }
  for (const PlacedAxis &axis : toList(used))
    colours.try_emplace(axis.id, colours.size());
}

void Painter::print(llvm::raw_ostream &os) {
  collectAxes();
  page.addTitle(title);
  const LayerOps::Phase &first = layer.phases.front();
  page.addLine(layer.path + ", " + stage::getName(first.kind).str() +
               ": each op, what it makes, and its parameters; bytes are those of one rank");
  std::vector<LegendEntry> legend;
  for (auto [axis, number] : colours)
    legend.push_back({axisFills[number % std::size(axisFills)].dark,
                      graph.mesh[axis].name + " " + std::to_string(graph.mesh[axis].size)});
  legend.push_back({wholeFill, "whole"});
  page.addLegend(legend);
  page.addLine("the dark part of a dim is what one rank has");
  page.addGap(8);
  int64_t headTop = page.addPlace(18);
  SvgPage::Style head = {fontSize, SvgPage::Anchor::Start, "#555"};
  page.printText(opLeft, headTop + 10, "op", head);
  page.printText(getResultLeft(), headTop + 10, "makes", head);
  page.printText(getParamLeft(), headTop + 10, "parameters", head);
  for (const Op *op : first.ops)
    if (!isState(op->kind) && op->kind != OpKind::Release)
      addRow(*op);
  page.addGap(4);
  for (const LayerOps::Phase &phase : llvm::ArrayRef(layer.phases).drop_front())
    addOtherPhase(phase);
  page.addGap(8);
  page.print(os);
}

void stage::printLayer(llvm::raw_ostream &os, const Graph &graph, const LayerOps &layer, const PictureFrame &frame) {
  Painter(graph, layer, frame).print(os);
}
