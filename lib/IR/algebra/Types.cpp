//===- Types.cpp - element types, dims, mesh, sharding --------------------===//
#include "stage/IR/algebra/Types.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;

static const char coordinatePrefix[] = "coord.";

Size stage::getCoordinateSymbol(SizeContext &sizes, const Axis &axis) {
  return sizes.symbol(coordinatePrefix + axis.name);
}

std::optional<AxisId> stage::getCoordinateAxis(const Mesh &mesh, llvm::StringRef symbol) {
  if (!symbol.consume_front(coordinatePrefix))
    return std::nullopt;
  return mesh.find(symbol);
}

unsigned stage::getBitSize(DType type) {
  switch (type) {
  case DType::F32:
  case DType::I32:
    return 32;
  case DType::F16:
  case DType::BF16:
    return 16;
  case DType::I64:
    return 64;
  case DType::F8:
  case DType::U8:
  case DType::I8:
    return 8;
  case DType::F4:
  case DType::I4:
    return 4;
  }
  llvm_unreachable("all types handled");
}

Size stage::getByteCount(Size elements, DType type) {
  unsigned bits = getBitSize(type);
  return bits % 8 == 0 ? elements * int64_t(bits / 8)
                       : (elements * int64_t(bits)).ceilDiv(elements.getContext().constant(8));
}

static constexpr std::pair<DType, const char *> dtypeNames[] = {
    {DType::F32, "f32"}, {DType::F16, "f16"}, {DType::BF16, "bf16"}, {DType::F8, "f8"}, {DType::F4, "f4"},
    {DType::I32, "i32"}, {DType::I64, "i64"}, {DType::U8, "u8"},     {DType::I8, "i8"}, {DType::I4, "i4"}};

llvm::StringRef stage::getName(DType type) {
  for (auto [id, name] : dtypeNames)
    if (id == type)
      return name;
  llvm_unreachable("all types have names");
}

std::optional<DType> stage::parseDType(llvm::StringRef name) {
  for (auto [id, text] : dtypeNames)
    if (name == text)
      return id;
  return std::nullopt;
}

bool Dim::answersTo(llvm::StringRef query) const {
  if (query == name)
    return true;
  for (const std::string &alias : aliases) {
    llvm::StringRef qualified = alias;
    if (qualified == query || qualified.rsplit('.').second == query)
      return true;
  }
  return !parts.empty() && parts.front()->answersTo(query);
}

AxisSet stage::toSet(llvm::ArrayRef<PlacedAxis> axes) {
  AxisSet set = 0;
  for (AxisId axis : axes)
    set |= toSet(axis);
  return set;
}

AxisList stage::toList(AxisSet axes) {
  AxisList list;
  for (AxisId axis = 0; axis < 32; ++axis)
    if (axes >> axis & 1)
      list.emplace_back(axis);
  return list;
}

std::optional<AxisId> Mesh::find(llvm::StringRef name) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name)
      return i;
  return std::nullopt;
}

std::optional<llvm::SmallVector<AxisId, 2>> Mesh::resolve(llvm::StringRef name) const {
  if (std::optional<AxisId> axis = find(name))
    return llvm::SmallVector<AxisId, 2>{*axis};
  for (const AxisGroup &group : groups)
    if (group.name == name)
      return group.axes;
  return std::nullopt;
}

llvm::SmallVector<std::pair<llvm::StringRef, PlacedAxis>, 4>
Mesh::nameAxes(llvm::ArrayRef<PlacedAxis> list, llvm::ArrayRef<const AxisGroup *> hidden) const {
  llvm::SmallVector<std::pair<llvm::StringRef, PlacedAxis>, 4> names;
  while (!list.empty()) {
    auto begins = [&](const AxisGroup &group) {
      if (group.axes.size() > list.size())
        return false;
      for (size_t i = 0; i < group.axes.size(); ++i)
        if (list[i].id != group.axes[i] || !list[i].joins(list.front()))
          return false;
      return true;
    };
    const AxisGroup *longest = nullptr;
    for (const AxisGroup &group : groups)
      if (group.axes.size() > (longest ? longest->axes.size() : 1) && begins(group) &&
          !llvm::is_contained(hidden, &group))
        longest = &group;
    names.emplace_back(longest ? longest->name : axes[list.front()].name, list.front());
    list = list.drop_front(longest ? longest->axes.size() : 1);
  }
  return names;
}

int64_t Mesh::getNumRanks() const {
  int64_t ranks = 1;
  for (const Axis &axis : axes)
    ranks *= axis.size;
  return ranks;
}

int64_t Mesh::getGroupSize(AxisSet set) const {
  int64_t ranks = 1;
  for (size_t i = 0; i < axes.size(); ++i)
    if (set >> i & 1)
      ranks *= axes[i].size;
  return ranks;
}

Size Mesh::getGroupSymbol(SizeContext &sizes, llvm::ArrayRef<PlacedAxis> list) const {
  Size product = sizes.one();
  for (AxisId axis : list)
    product = product * axes[axis].symbol;
  return product;
}

Size BlockLengths::get(Size index) const {
  llvm::SmallVector<Size, 2> indices(row.begin(), row.end());
  indices.push_back(index);
  return index.getContext().lookup(table, indices);
}

std::string BlockLengths::str() const {
  std::string text = table;
  for (Size index : row)
    text += "[" + index.str() + "]";
  return text;
}

uint32_t Mesh::addBlockLengths(BlockLengths lengths) {
  auto known = llvm::find(blockLengths, lengths);
  if (known == blockLengths.end())
    known = blockLengths.insert(known, std::move(lengths));
  return known - blockLengths.begin();
}

const SlotLoad *Mesh::findSlotLoad(const Dim *slots) const {
  if (slotLoads.empty() || !slots)
    return nullptr;
  auto found = llvm::find_if(slotLoads, [&](const SlotLoad &load) { return load.slots == slots; });
  return found == slotLoads.end() ? nullptr : &*found;
}

Size SlotLoad::getMostSlots() const {
  SizeContext &sizes = choices.getContext();
  if (isEven())
    return getChoicesOfSource().ceilDiv(target->size) * getNumSources();
  return sizes.share(table, getChoicesOfSource(), {{sizes.largestEntry(), target->size}}) * getNumSources();
}

unsigned Mesh::getNumNetworkDims() const {
  return axes.empty() || !axes.front().networkDim ? 0 : *axes.front().networkDim + 1;
}

int64_t Mesh::getStride(AxisId id) const {
  int64_t stride = 1;
  for (size_t i = id + 1; i < axes.size(); ++i)
    stride *= axes[i].size;
  return stride;
}

llvm::StringRef stage::getName(MemorySpace space) { return space == MemorySpace::Host ? "host" : "device"; }

llvm::StringRef stage::getName(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return "sum";
  case ReduceKind::Max:
    return "max";
  case ReduceKind::Min:
    return "min";
  }
  llvm_unreachable("all kinds handled");
}

AxisSet Sharding::getListed() const {
  AxisSet set = 0;
  for (const AxisList &list : dims)
    for (const PlacedAxis &axis : list)
      if (axis.isListed())
        set |= toSet(axis);
  return set;
}

AxisSet Sharding::getSharded() const {
  AxisSet set = 0;
  for (const AxisList &list : dims)
    set |= toSet(list);
  return set | toSet(flat);
}

AxisSet Sharding::getTwice() const {
  AxisSet once = 0, twice = 0;
  for (const AxisList &list : dims) {
    twice |= once & toSet(list);
    once |= toSet(list);
  }
  return twice;
}

std::optional<unsigned> Sharding::getDimOf(AxisId axis) const {
  for (size_t i = 0; i < dims.size(); ++i)
    if (llvm::is_contained(dims[i], axis))
      return i;
  return std::nullopt;
}

Sharding Sharding::withoutPartial() const {
  Sharding result = *this;
  result.partial = 0;
  return result;
}

bool Constraint::empty() const {
  return !partial && !replicated && !gathered && llvm::none_of(dims, [](auto &dim) { return dim.has_value(); }) &&
         llvm::all_of(floors, [](auto &floor) { return floor.empty(); });
}

/// Which part of what an axis deals out a rank has, or, of an axis in `over`, that of which there is most.
static Size getPart(const Mesh &mesh, SizeContext &sizes, const PlacedAxis &axis, AxisSet over) {
  if (over >> axis & 1)
    return sizes.largestEntry();
  Size part = getCoordinateSymbol(sizes, mesh[axis]);
  return axis.rotation ? (part + axis.rotation).mod(mesh[axis].symbol) : part;
}

Size stage::getLocalSize(const Mesh &mesh, Size size, llvm::ArrayRef<PlacedAxis> axes, AxisSet over) {
  for (const PlacedAxis &axis : axes)
    size = axis.isListed() ? mesh.getBlockLengths(axis).get(getPart(mesh, size.getContext(), axis, over))
                           : size / mesh[axis].symbol;
  return size;
}

/// Which block of how many a rank has along each axis, outer first.
static llvm::SmallVector<std::pair<Size, Size>, 2> listBlocks(const Mesh &mesh, SizeContext &sizes,
                                                              llvm::ArrayRef<PlacedAxis> axes, AxisSet over) {
  llvm::SmallVector<std::pair<Size, Size>, 2> blocks;
  for (const PlacedAxis &axis : axes)
    blocks.emplace_back(getPart(mesh, sizes, axis, over), mesh[axis].symbol);
  return blocks;
}

/// Slots of a part of the target where these are dealt out evenly.
///
/// All n choices are numbered, and number k goes to position k * X / n of X, rounded down: what comes to any stretch of
/// positions is then as even as it can be. Which source has which number must keep that for the sources of each rank
/// that holds slots, which are those of a coordinate on some outer axes: so a number is that of a choice within its
/// source, and then of the source, inner axes first. With p on the P coordinates of these outer axes a rank has the
/// numbers k = p (mod P), and block t of m of the target the numbers from t * n / m up to (t + 1) * n / m:
///   6 choices of 2 sources, 4 targets:  number     0 1 2 3 4 5
///                                       to target  0 0 1 2 2 3;  of source 0: 0, 1, 2, of source 1: 0, 2, 3
static Size getEvenSlots(const Mesh &mesh, const SlotLoad &load, llvm::ArrayRef<PlacedAxis> targetAxes,
                         llvm::ArrayRef<PlacedAxis> slotAxes, AxisSet over) {
  SizeContext &sizes = load.choices.getContext();
  Size numRows = mesh.getGroupSymbol(sizes, slotAxes);
  if (targetAxes.empty())
    return load.choices / numRows;
  Size row = sizes.zero(), stride = sizes.one();
  for (const PlacedAxis &axis : slotAxes) {
    if (over >> axis & 1) // blocks of one size differ by one at most
      return load.choices.ceilDiv(numRows * mesh.getGroupSymbol(sizes, targetAxes));
    row = row + getPart(mesh, sizes, axis, over) * stride;
    stride = stride * mesh[axis].symbol;
  }
  Size block = sizes.zero(), numBlocks = sizes.one(), most = sizes.one();
  for (const PlacedAxis &axis : targetAxes) {
    if (over >> axis & 1) {
      most = most * mesh[axis].symbol; // of what blocks have together the one with most has its part, rounded up
      continue;
    }
    if (most != sizes.one())
      return load.choices.ceilDiv(numRows * mesh.getGroupSymbol(sizes, targetAxes));
    block = block * mesh[axis].symbol + getPart(mesh, sizes, axis, over);
    numBlocks = numBlocks * mesh[axis].symbol;
  }
  Size divisor = numRows * numBlocks,
       first = (numRows - row) * numBlocks; // one row's too many on both sides, so that none is negative
  Size slots = ((block + 1) * load.choices + first).ceilDiv(divisor) - (block * load.choices + first).ceilDiv(divisor);
  return slots.ceilDiv(most);
}

/// Slots of a rank's part of the target.
static Size getSlotsOfPart(const Mesh &mesh, const SlotLoad &load, llvm::ArrayRef<PlacedAxis> targetAxes,
                           llvm::ArrayRef<PlacedAxis> slotAxes, AxisSet over) {
  if (load.isEven())
    return getEvenSlots(mesh, load, targetAxes, slotAxes, over);
  SizeContext &sizes = load.choices.getContext();
  Size ofSource = sizes.share(load.table, load.getChoicesOfSource(), listBlocks(mesh, sizes, targetAxes, over));
  return ofSource * load.getNumSources() / mesh.getGroupSymbol(sizes, slotAxes);
}

Size stage::getLocalSlots(const Mesh &mesh, const SlotLoad &load, const Extent *target,
                          llvm::ArrayRef<PlacedAxis> targetAxes, llvm::ArrayRef<PlacedAxis> slotAxes, AxisSet over) {
  return getSlotsOfPart(mesh, load, targetAxes, slotAxes, over) /
         getLocalSize(mesh, target ? target->size : load.target->size, targetAxes);
}

Size stage::getFilledTargets(const Mesh &mesh, const SlotLoad &load, const Extent &target,
                             llvm::ArrayRef<PlacedAxis> targetAxes, llvm::ArrayRef<PlacedAxis> slotAxes) {
  SizeContext &sizes = load.choices.getContext();
  if (load.isEven()) // none has two slots where another has none
    return min(getLocalSize(mesh, target.size, targetAxes), getEvenSlots(mesh, load, targetAxes, slotAxes, 0));
  return sizes.countShares(load.table, load.getChoicesOfSource(), listBlocks(mesh, sizes, targetAxes, 0));
}

llvm::SmallVector<Size, 8> stage::getLocalSizes(const Mesh &mesh, llvm::ArrayRef<Extent> extents,
                                                llvm::ArrayRef<AxisList> axes, AxisSet over) {
  llvm::SmallVector<Size, 8> sizes;
  auto getAxes = [&](size_t i) { return i < axes.size() ? llvm::ArrayRef<PlacedAxis>(axes[i]) : llvm::None; };
  for (size_t i = 0; i < extents.size(); ++i) {
    const SlotLoad *load = mesh.findUnevenSlots(extents[i].dim);
    if (!load) {
      sizes.push_back(getLocalSize(mesh, extents[i].size, getAxes(i), over));
      continue;
    }
    const Extent *target = llvm::find_if(extents, [&](const Extent &extent) { return extent.dim == load->target; });
    size_t place = target - extents.begin();
    bool hasTarget = place < extents.size();
    sizes.push_back(getLocalSlots(mesh, *load, hasTarget ? target : nullptr, hasTarget ? getAxes(place) : llvm::None,
                                  getAxes(i), over));
  }
  return sizes;
}

Size stage::getLocalElements(SizeContext &sizes, const Mesh &mesh, const TensorType &type, const Sharding &sharding,
                             AxisSet over) {
  Size product = sizes.one();
  for (Size size : getLocalSizes(mesh, type.shape, sharding.dims, over))
    product = product * size;
  for (AxisId axis : sharding.flat)
    product = product.ceilDiv(mesh[axis].symbol);
  return product;
}

/// How many scales a piece of these sizes has.
static Size countScales(SizeContext &sizes, const Quantization &quantization, llvm::ArrayRef<Size> local) {
  Size scales = sizes.one(), positions = sizes.one();
  for (auto [size, block] : llvm::zip(local, quantization.blocks)) {
    positions = positions * size;
    if (!block)
      continue;
    scales = scales * positions.ceilDiv(sizes.constant(block));
    positions = sizes.one();
  }
  return scales;
}

Size stage::getLocalBytes(SizeContext &sizes, const Mesh &mesh, const TensorType &type, const Sharding &sharding,
                          AxisSet over) {
  Size elements = getLocalElements(sizes, mesh, type, sharding, over);
  const Quantization *quantization = type.quantization.get();
  if (!quantization)
    return getByteCount(elements, type.dtype);
  Size scales = countScales(sizes, *quantization, getLocalSizes(mesh, type.shape, sharding.dims, over));
  for (AxisId axis : sharding.flat)
    scales = scales.ceilDiv(mesh[axis].symbol);
  return getByteCount(elements, quantization->type) + getByteCount(scales, quantization->scales);
}

Size stage::getPieceBytes(SizeContext &sizes, const TensorType &type, llvm::ArrayRef<Size> local) {
  Size elements = sizes.one();
  for (Size size : local)
    elements = elements * size;
  const Quantization *quantization = type.quantization.get();
  if (!quantization)
    return getByteCount(elements, type.dtype);
  return getByteCount(elements, quantization->type) +
         getByteCount(countScales(sizes, *quantization, local), quantization->scales);
}

Size stage::getAverageBytes(const TensorType &type, Size elements) {
  const Quantization *quantization = type.quantization.get();
  Size bytes = elements * int64_t(getBitSize(quantization ? quantization->type : type.dtype)) / 8;
  if (!quantization || quantization->blocks.empty())
    return bytes;
  Size scales = elements;
  for (uint32_t block : quantization->blocks)
    scales = block ? scales / int64_t(block) : scales;
  return bytes + scales * int64_t(getBitSize(quantization->scales)) / 8;
}
