//===- Types.h - element types, dims, shapes, mesh, sharding ---*- C++ -*-===//
//
// The nouns of the graph IR that are not operations.
//
//   dim    a named tensor size: `dim E = D/H;`. One dim answers to every name it
//          is passed under (its aliases).
//   axis   a direction of the mesh of ranks. The last axis varies fastest.
//   sharding  for each dim of a value the axes it is split over, outer first, and
//          the axes over which the value is a partial result still to be reduced:
//          `{B@dp, S@(cp, tp), D} partial(tp)`. An axis stands in at most one
//          place of one value (law L4). Axes of size 1 never appear in a sharding.
//   flat    what is kept rather than computed with (parameters, their gradients,
//          optimizer states) may be cut without regard to dims: `{_, F@tp} flat(dp)` is
//          what a rank has of `{_, F@tp}`, laid out row by row, padded at the end to a
//          multiple of the size of dp, and cut into blocks; with several axes, one after the other.
//   layout  which part of a dim a coordinate gets: `S@cp` the coordinate's block, and
//          `S@cp mirrored` two blocks, as far from the one end as from the other, so
//          that all ranks have the same share of a causal mask. `S@cp rotated 1`: the
//          coordinate has what the next one would have, and the last what the first
//          would. `T@ep by load`: in blocks as long as a table says, entry c for coordinate c, which
//          together are T. It belongs to the axis where it stands: two shardings that differ in it
//          are different.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_ALGEBRA_TYPES_H
#define STAGE_IR_ALGEBRA_TYPES_H

#include "stage/Symbolic/Size.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stage {

/// Element types. `F8` and `F4` are any float formats of 8 and 4 bits.
enum class DType : uint8_t { F32, F16, BF16, F8, F4, I32, I64, U8, I8, I4 };
/// Bits of one element.
unsigned getBitSize(DType type);
/// Bytes of so many elements, side by side: a last byte may be half full.
Size getByteCount(Size elements, DType type);
llvm::StringRef getName(DType type);
std::optional<DType> parseDType(llvm::StringRef name);
inline bool isFloat(DType type) { return type <= DType::F4; }

/// A named tensor size.
struct Dim {
  std::string name; ///< Unique in its graph; what the IR prints.
  Size size;        ///< Global size. For an independent dim the symbol of the same name.
  /// Every name it is passed under, qualified by its module: "Llama.F", "SwiGLU.F".
  llvm::SmallVector<std::string, 2> aliases;
  /// Of a dim that the program declares as `(H E)`: the dims that it is the product of, outermost first. It answers to
  /// the names of the first, too, and is split as that is.
  llvm::SmallVector<const Dim *, 2> parts;
  /// The position that its first element has in the sequence of which it is a part, which is what an index over it says
  /// in formulas and masks: of the tokens of a decode step, how many there have been before. Null: 0.
  Size origin;
  /// It has positions of several sequences, one behind the other: units bind its size, the sum over their sequences. An
  /// origin, and what SequenceSums are made of, is of each sequence.
  bool isPacked = false;
  /// There are units that have nothing of it, whose ops along it do not run.
  bool isOptional = false;
  SMLoc loc;
  /// True if `query` ("F" or "SwiGLU.F") is one of the names.
  bool answersTo(llvm::StringRef query) const;
};

/// One position of a shape: a size and, unless it is anonymous, the dim it is.
struct Extent {
  const Dim *dim = nullptr;
  Size size;
  bool operator==(const Extent &other) const { return dim == other.dim && size == other.size; }
};

/// In which memory a rank keeps its piece of a value: ops compute and communicate on the device.
enum class MemorySpace : uint8_t { Device, Host };
constexpr unsigned numMemorySpaces = 2;
llvm::StringRef getName(MemorySpace space);

/// How a *quantized* tensor is kept: elements of a small type, and a number by which those of each block are scaled.
struct Quantization {
  DType type = DType::F8, scales = DType::F32;
  /// Per dim how many positions a block has; 0: blocks go on over the next dim, as if both were one. A rank's blocks
  /// begin with its piece, the last one may be shorter. Empty: all that a rank has is one block.
  llvm::SmallVector<uint32_t, 4> blocks;
  bool operator==(const Quantization &other) const {
    return type == other.type && scales == other.scales && blocks == other.blocks;
  }
};

struct TensorType {
  DType dtype = DType::F32;           ///< What ops take it for, however it is kept.
  llvm::SmallVector<Extent, 4> shape; ///< Global extents.
  MemorySpace space = MemorySpace::Device;
  /// Null: kept in its element type.
  std::shared_ptr<const Quantization> quantization = nullptr;
  bool isKeptAs(const TensorType &other) const {
    return quantization && other.quantization ? *quantization == *other.quantization
                                              : quantization == other.quantization;
  }
  unsigned getNumDims() const { return shape.size(); }
};

/// Position of an axis in its mesh.
using AxisId = uint8_t;
/// How an axis of size n deals out what is to be split over it.
enum class Layout : uint8_t {
  Blocked,  ///< In n blocks: coordinate c gets block c.
  Mirrored, ///< In 2n blocks: coordinate c gets blocks c and 2n - 1 - c ("zigzag").
  Listed,   ///< In n blocks of the lengths that a table lists: coordinate c gets block c.
  Cyclic,   ///< One by one: coordinate c gets every n-th, from c on. What grows at its end stays where it is.
};

/// An axis where it splits something.
struct PlacedAxis {
  AxisId id = 0;
  Layout layout = Layout::Blocked;
  /// Coordinate c has the part of coordinate c + rotation, counted around; less than the size of the axis.
  uint32_t rotation = 0;
  /// Of Listed: number of the lengths in Mesh::getBlockLengths.
  uint32_t lengths = 0;

  PlacedAxis() = default;
  explicit PlacedAxis(AxisId id, Layout layout = Layout::Blocked, uint32_t rotation = 0, uint32_t lengths = 0)
      : id(id), layout(layout), rotation(rotation), lengths(lengths) {}
  /// Another axis in the same layout.
  PlacedAxis withId(AxisId other) const { return PlacedAxis(other, layout, rotation, lengths); }
  /// Compared with an AxisId the layout does not count, compared with a PlacedAxis it does.
  operator AxisId() const { return id; }
  bool isMirrored() const { return layout == Layout::Mirrored; }
  bool isListed() const { return layout == Layout::Listed; }
  bool isCyclic() const { return layout == Layout::Cyclic; }
  /// In blocks by coordinate.
  bool isPlain() const { return layout == Layout::Blocked && rotation == 0; }
  /// Where it stands next to another it is one axis with it: the layout of both is that of the product.
  bool joins(const PlacedAxis &other) const {
    return layout == other.layout && !isListed() && !isCyclic() && !rotation && !other.rotation;
  }
  friend auto operator<=>(const PlacedAxis &, const PlacedAxis &) = default;
};

/// Ordered axes, outer first.
using AxisList = llvm::SmallVector<PlacedAxis, 2>;
/// Unordered axes, bit i for axis i.
using AxisSet = uint32_t;
inline AxisSet toSet(AxisId axis) { return AxisSet(1) << axis; }
inline AxisSet toSet(const PlacedAxis &axis) { return toSet(axis.id); }
AxisSet toSet(llvm::ArrayRef<PlacedAxis> axes);
/// In the order of the mesh, blocked.
AxisList toList(AxisSet axes);

struct Axis {
  std::string name;
  int64_t size = 1;
  Size symbol; ///< The size as a symbol of the axis's name.
  SMLoc loc;
  /// The dimension of the network in which it lies, where the mesh is on a topology: then all axes say so, and those of
  /// higher dimensions stand before those of lower ones.
  std::optional<unsigned> networkDim = std::nullopt;
};

/// One name for several axes, outer first: `axis ep = (dp.1, cp)`.
struct AxisGroup {
  std::string name;
  llvm::SmallVector<AxisId, 2> axes;
  SMLoc loc;
};

/// How long the blocks of a dim are that is dealt out by a table: its entries, or those of one of its rows.
struct BlockLengths {
  std::string table;
  llvm::SmallVector<Size, 1> row; ///< Indices before that of the coordinate; they may differ by unit.
  bool operator==(const BlockLengths &other) const { return table == other.table && row == other.row; }
  /// The entry at `index`, or what SizeContext has in place of one.
  Size get(Size index) const;
  /// `load`, `hist[m]`.
  std::string str() const;
};

/// How full the slots are into which ops route what (OpDef.h). Every source, a rank with tokens of its own, deals out
/// its part of the choices along the target in proportion to the entries of a table, in whole numbers (apportion()),
/// or, without a table, *evenly*: all sources together and each of them by itself as evenly as whole numbers can be.
/// Where all of them find a slot, targets have as many slots as come: the size of the dim says their number on average,
/// perhaps rounded up, and those of a rank are what its part of the target gets from its part of the sources.
struct SlotLoad {
  const Dim *slots = nullptr, *target = nullptr;
  std::string table;      ///< One entry per position of the target; empty: evenly.
  Size choices;           ///< Of all sources.
  Size sources;           ///< How many there are; null as long as nobody knows: one.
  bool isDropless = true; ///< Targets have as many slots as come; else all have equally many.
  SMLoc loc;

  bool isEven() const { return table.empty(); }
  Size getNumSources() const { return sources ? sources : choices.getContext().one(); }
  Size getChoicesOfSource() const { return choices / getNumSources(); }
  /// The most slots that a position of the target has, of all sources together where each has as many.
  Size getMostSlots() const;
};

/// The named array of ranks. Its axes are the atoms of which everything else is made: where a strategy reads the same
/// ranks in two ways, the axes of both readings are groups of the factors that they have in common.
class Mesh {
public:
  /// Names must be new. At most 32 axes.
  void addAxis(Axis axis) { axes.push_back(std::move(axis)); }
  /// One for each axis.
  void setNetworkDims(llvm::ArrayRef<unsigned> dims) {
    for (auto [axis, dim] : llvm::zip(axes, dims))
      axis.networkDim = dim;
  }
  /// Names must be new. The axes must be of the mesh, each once.
  void addGroup(AxisGroup group) { groups.push_back(std::move(group)); }
  llvm::ArrayRef<Axis> getAxes() const { return axes; }
  llvm::ArrayRef<AxisGroup> getGroups() const { return groups; }
  /// The number of these lengths, by which axes are placed.
  uint32_t addBlockLengths(BlockLengths lengths);
  bool hasBlockLengths() const { return !blockLengths.empty(); }
  const BlockLengths &getBlockLengths(const PlacedAxis &axis) const { return blockLengths[axis.lengths]; }
  /// One for each dim of slots, which must be new.
  void addSlotLoad(SlotLoad load) { slotLoads.push_back(std::move(load)); }
  llvm::ArrayRef<SlotLoad> getSlotLoads() const { return slotLoads; }
  llvm::MutableArrayRef<SlotLoad> getSlotLoads() { return slotLoads; }
  /// Of a dim of slots; null if there is none.
  const SlotLoad *findSlotLoad(const Dim *slots) const;
  /// The same if targets have as many slots as come.
  const SlotLoad *findUnevenSlots(const Dim *slots) const {
    const SlotLoad *load = findSlotLoad(slots);
    return load && load->isDropless ? load : nullptr;
  }
  /// Ranks may have different parts of a dim.
  bool isUneven() const { return hasBlockLengths() || !slotLoads.empty(); }
  const Axis &operator[](AxisId id) const { return axes[id]; }
  std::optional<AxisId> find(llvm::StringRef name) const;
  /// The axes that the name of an axis or of a group means; nothing if it is neither.
  std::optional<llvm::SmallVector<AxisId, 2>> resolve(llvm::StringRef name) const;
  /// A list of axes as people call it: a run of axes that is a group (the longest one; of equally long ones the first
  /// that was declared) by the group's name, the others by their own. The layout is that of the run's first axis. Names
  /// of `hidden` groups are not used.
  llvm::SmallVector<std::pair<llvm::StringRef, PlacedAxis>, 4>
  nameAxes(llvm::ArrayRef<PlacedAxis> list, llvm::ArrayRef<const AxisGroup *> hidden = {}) const;
  /// Product of the sizes of all axes.
  int64_t getNumRanks() const;
  /// Product of the sizes of these axes.
  int64_t getGroupSize(AxisSet axes) const;
  /// The same as a symbolic size.
  Size getGroupSymbol(SizeContext &sizes, llvm::ArrayRef<PlacedAxis> axes) const;
  /// Dimensions of the network that the mesh is on; 0 if it is on none.
  unsigned getNumNetworkDims() const;
  /// Distance in ranks between neighbours on an axis.
  int64_t getStride(AxisId id) const;
  /// Coordinate of a rank on an axis.
  int64_t getCoordinate(int64_t rank, AxisId id) const { return rank / getStride(id) % axes[id].size; }
  /// Which part a coordinate has of what is split over an axis: its own, unless the layout is rotated.
  int64_t getPart(PlacedAxis axis, int64_t coordinate) const { return (coordinate + axis.rotation) % axes[axis].size; }

private:
  llvm::SmallVector<Axis, 6> axes;
  llvm::SmallVector<AxisGroup, 2> groups;
  std::vector<BlockLengths> blockLengths; ///< Each once.
  std::vector<SlotLoad> slotLoads;        ///< By dim: each once, few.
};

enum class ReduceKind : uint8_t { Sum, Max, Min };
llvm::StringRef getName(ReduceKind kind);

/// Where the pieces of a value are.
struct Sharding {
  llvm::SmallVector<AxisList, 4> dims; ///< One list per dim of the value.
  AxisSet partial = 0;                 ///< Axes still to be reduced.
  ReduceKind reduce = ReduceKind::Sum; ///< How; one kind per value.
  /// Over these, outer first and blocked, what `dims` leaves is cut row by row whatever its dims are, padded.
  AxisList flat;

  static Sharding replicated(unsigned numDims) {
    Sharding result;
    result.dims.resize(numDims);
    return result;
  }
  bool operator==(const Sharding &other) const {
    return dims == other.dims && flat == other.flat && partial == other.partial &&
           (partial == 0 || reduce == other.reduce);
  }
  bool operator!=(const Sharding &other) const { return !(*this == other); }
  /// Axes on dims, and those of flat storage.
  AxisSet getSharded() const;
  /// Those that deal a dim by a table.
  AxisSet getListed() const;
  /// Of a *piece*, what a rank has of a tensor in a step of a ring: axes that stand on two dims. Coordinate c has its
  /// block of the one, and of the other the block that it has in this step: {tp, tp rotated 1} is a block beside the
  /// diagonal. Other blocks are nowhere.
  AxisSet getTwice() const;
  /// The dim an axis stands on. Nothing for one of flat storage.
  std::optional<unsigned> getDimOf(AxisId axis) const;
  /// The same without what is still to be reduced.
  Sharding withoutPartial() const;
};

/// What a program demands of a value's sharding; from inline annotations and from
/// strategy rules. An absent list leaves a dim open.
struct Constraint {
  llvm::SmallVector<std::optional<AxisList>, 4> dims; ///< Exact: these axes, no others. `F@()` is an empty list.
  llvm::SmallVector<AxisList, 4> floors;              ///< At least these axes, outermost (`shard S over cp`).
  std::optional<AxisSet> partial;                     ///< Exactly these stay partial; absent: open.
  ReduceKind reduce = ReduceKind::Sum;
  AxisSet replicated = 0; ///< `replicated(tp)`: on no dim and not partial.
  AxisSet gathered =
      0;     ///< `keep gathered over tp`: backward gets a form that is not split over these, if there is one.
  SMLoc loc; ///< The annotation or rule that decided last.
  bool isInline = false; ///< Inline beats strategy.

  bool empty() const;
};

/// Elements a rank holds of one extent under `axes`: size / product of the axes. Where one of these deals by a table,
/// it depends on the rank's coordinate there; of axes in `over` it is the most that any coordinate has.
Size getLocalSize(const Mesh &mesh, Size size, llvm::ArrayRef<PlacedAxis> axes, AxisSet over = 0);
/// Slots a rank holds per position that it has of the target, on average, where these have as many as come: exact, and
/// with the number of its positions a whole number. `target` is the target's extent, null where what is split has none,
/// and `over` is as above.
Size getLocalSlots(const Mesh &mesh, const SlotLoad &load, const Extent *target, llvm::ArrayRef<PlacedAxis> targetAxes,
                   llvm::ArrayRef<PlacedAxis> slotAxes, AxisSet over = 0);
/// Of the positions that a rank has of the target those that have a slot: of others there is nothing to compute.
/// Parameters as above.
Size getFilledTargets(const Mesh &mesh, const SlotLoad &load, const Extent &target,
                      llvm::ArrayRef<PlacedAxis> targetAxes, llvm::ArrayRef<PlacedAxis> slotAxes);
/// Elements a rank holds of several extents, each under its axes (absent: none).
llvm::SmallVector<Size, 8> getLocalSizes(const Mesh &mesh, llvm::ArrayRef<Extent> extents,
                                         llvm::ArrayRef<AxisList> axes, AxisSet over = 0);
/// Elements a rank holds of a value, those among them that pad flat storage: ceil(elements / n) for each flat axis of
/// size n.
Size getLocalElements(SizeContext &sizes, const Mesh &mesh, const TensorType &type, const Sharding &sharding,
                      AxisSet over = 0);
/// Bytes a rank holds of a value, scales of blocks among them. Of flat storage a part has its share of the scales,
/// rounded up.
Size getLocalBytes(SizeContext &sizes, const Mesh &mesh, const TensorType &type, const Sharding &sharding,
                   AxisSet over = 0);
/// The same of a piece of these sizes, one per dim, in no flat storage.
Size getPieceBytes(SizeContext &sizes, const TensorType &type, llvm::ArrayRef<Size> local);
/// The same of a tensor of these elements, where the last block of each row need not be full: exact, but perhaps no
/// whole number.
Size getAverageBytes(const TensorType &type, Size elements);

/// The symbol of a rank's coordinate on an axis: `coord.cp`.
Size getCoordinateSymbol(SizeContext &sizes, const Axis &axis);
/// The axis whose coordinate a symbol is, if it is one.
std::optional<AxisId> getCoordinateAxis(const Mesh &mesh, llvm::StringRef symbol);

} // namespace stage

#endif // STAGE_IR_ALGEBRA_TYPES_H
