//===- MemorySnapshot.cpp - memory over a step, for PyTorch's viewer ------===//
//
// A snapshot of a caching allocator: what it did for each device, and the segments that it has in the end. Devices are
// stages.
//
//   device_traces[0]   segment_alloc 2 MiB, alloc 1.5 MiB (layers.mlp.up, of F0), ..., free_requested, free_completed
//   segments           of each segment its blocks
//
// An event has two frames: the tensor, with the line of the source that makes it, and the unit with the iteration.
//
//===----------------------------------------------------------------------===//
#include "MemoryCurve.h"
#include "PickleWriter.h"
#include "stage/Memory/CachingAllocator.h"
#include "llvm/Support/Path.h"

using namespace stage;

namespace {
/// The events of a device.
class Events : public MemoryCurve {
public:
  Events(PickleWriter &pickle, const MemoryTimeline &timeline, const StageMemory &stage, DiagnosticEngine &diags)
      : MemoryCurve(timeline, stage), pickle(pickle), sources(diags.getSources()),
        allocator(*timeline.runtime->allocator, timeline.capacity) {}
  const CachingAllocator &getAllocator() const { return allocator; }

private:
  /// What is allocated, until the node is known for which it is.
  struct Pending {
    unsigned number;
    AllocatedTensor tensor;
  };

  void allocate(unsigned number, const AllocatedTensor &tensor) override {
    MemoryCurve::allocate(number, tensor);
    if (number >= tensors.size())
      tensors.resize(number + 1);
    int64_t address = allocator.allocate(tensor.bytes);
    tensors[number] = {address, tensor};
    for (const CachingAllocator::Segment &segment : allocator.getGivenBack())
      event("segment_free", segment.address, segment.bytes, nullptr);
    if (const auto &segment = allocator.getNewSegment())
      event("segment_alloc", segment->address, segment->bytes, nullptr);
    event("alloc", address, tensor.bytes, &tensor);
  }
  void free(unsigned number) override {
    MemoryCurve::free(number);
    const auto &[address, tensor] = tensors[number];
    event("free_requested", address, tensor.bytes, &tensor);
    event("free_completed", address, tensor.bytes, &tensor);
    allocator.free(address);
  }
  void show(const Moment &moment) override {
    now = moment.end;
    unit = moment.place.unit;
  }

  /// Without a tensor: of a segment.
  void event(llvm::StringRef action, int64_t address, int64_t bytes, const AllocatedTensor *tensor) {
    pickle.item();
    pickle.beginDict();
    pickle.string("action");
    pickle.string(action);
    pickle.string("addr");
    pickle.number(address);
    pickle.string("size");
    pickle.number(bytes);
    pickle.string("stream");
    pickle.number(0);
    pickle.string("time_us");
    pickle.number(timeline.step ? now / (ticksPerSecond / 1'000'000) : now);
    // The viewer wants one of this name if there are any.
    pickle.string("category");
    pickle.string(tensor ? getName(tensor->kind) : "unknown");
    pickle.string("frames");
    pickle.beginList();
    if (tensor) {
      pickle.item();
      frameOfTensor(*tensor);
      pickle.item();
      frame(unit ? getUnitName(*unit) : "before the step", std::max(tensor->iteration, 0),
            tensor->iteration < 0 ? "outside of repeats" : "iteration");
    }
    pickle.endList();
    pickle.endDict();
  }

  void frame(llvm::StringRef file, int64_t line, llvm::StringRef name) {
    pickle.beginDict();
    pickle.string("filename");
    pickle.string(file);
    pickle.string("line");
    pickle.number(line);
    pickle.string("name");
    pickle.string(name);
    pickle.endDict();
  }

  void frameOfTensor(const AllocatedTensor &tensor) {
    auto [known, isNew] = frames.try_emplace({tensor.value, tensor.name}, 0);
    if (!isNew)
      return pickle.recall(known->second);
    SMLoc loc = tensor.value ? tensor.value->getOp() ? tensor.value->getOp()->loc : SMLoc() : SMLoc();
    unsigned buffer = loc.isValid() ? sources.FindBufferContainingLoc(loc) : 0;
    llvm::StringRef file = buffer ? llvm::sys::path::filename(sources.getMemoryBuffer(buffer)->getBufferIdentifier())
                                  : llvm::StringRef("the runtime");
    frame(file, buffer ? sources.getLineAndColumn(loc, buffer).first : 0,
          tensor.value ? describe(*tensor.value) : tensor.name.str());
    known->second = pickle.remember();
  }

  PickleWriter &pickle;
  llvm::SourceMgr &sources;
  CachingAllocator allocator;
  std::vector<std::pair<int64_t, AllocatedTensor>> tensors; ///< With their addresses.
  std::map<std::pair<const Value *, llvm::StringRef>, unsigned> frames;
  Ticks now = 0;
  std::optional<size_t> unit; ///< Of the last node.
};
} // namespace

static void printBlocks(PickleWriter &pickle, const CachingAllocator &allocator, unsigned device) {
  const auto &blocks = allocator.getBlocks();
  for (auto block = blocks.begin(); block != blocks.end();) {
    int64_t segment = block->first, bytes = 0;
    pickle.item();
    pickle.beginDict();
    pickle.string("device");
    pickle.number(device);
    pickle.string("address");
    pickle.number(segment);
    pickle.string("stream");
    pickle.number(0);
    pickle.string("segment_type");
    pickle.string(block->second.isSmall ? "small" : "large");
    pickle.string("blocks");
    pickle.beginList();
    for (; block != blocks.end() && block->second.segment == segment; ++block) {
      bytes += block->second.bytes;
      pickle.item();
      pickle.beginDict();
      pickle.string("address");
      pickle.number(block->first);
      pickle.string("size");
      pickle.number(block->second.bytes);
      pickle.string("requested_size");
      pickle.number(block->second.requested);
      pickle.string("state");
      pickle.string(block->second.requested ? "active_allocated" : "inactive");
      pickle.string("frames");
      pickle.beginList();
      pickle.endList();
      pickle.endDict();
    }
    pickle.endList();
    pickle.string("total_size");
    pickle.number(bytes);
    pickle.endDict();
  }
}

void stage::printSnapshot(llvm::raw_ostream &os, const MemoryTimeline &timeline, DiagnosticEngine &diags) {
  PickleWriter pickle(os);
  std::deque<CachingAllocator> allocators;
  pickle.beginDict();
  pickle.string("device_traces");
  pickle.beginList();
  for (const StageMemory &stage : timeline.report->stages) {
    pickle.item();
    pickle.beginList();
    Events events(pickle, timeline, stage, diags);
    events.walk(diags);
    allocators.push_back(events.getAllocator());
    pickle.endList();
  }
  pickle.endList();
  pickle.string("segments");
  pickle.beginList();
  for (unsigned device = 0; device < allocators.size(); ++device)
    printBlocks(pickle, allocators[device], device);
  pickle.endList();
  pickle.endDict();
  pickle.finish();
}
