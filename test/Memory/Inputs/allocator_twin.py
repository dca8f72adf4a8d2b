"""An allocator of its own, held against the events of a snapshot.

Usage: allocator_twin.py SNAPSHOT. Written from the description of PyTorch's caching allocator (CUDACachingAllocator.cpp),
by lists that are searched from end to end: nothing of it is fast. For each allocation of the snapshot it says where the
tensor must lie, and whether a segment is needed; for each segment how long it is.
"""
import pickle
import sys

ROUND, SMALL, SMALL_SEGMENT = 512, 1 << 20, 2 << 20
LARGE, LARGE_SEGMENT, SEGMENT_ROUND, UNSPLIT = 10 << 20, 20 << 20, 2 << 20, 1 << 20


def up(size, multiple):
    return -(-size // multiple) * multiple


class Twin:
    def __init__(self):
        self.segments = []  # [address, is_small, [[address, bytes, is_free], ...]]
        self.allocated = self.reserved = 0
        self.peak_allocated = self.peak_reserved = 0

    def find(self, size, small):
        parts = [(part[1], part[0], segment, part) for segment in self.segments if segment[1] == small
                 for part in segment[2] if part[2] and part[1] >= size]
        return min(parts, key=lambda found: found[:2], default=None)

    def segment_size(self, size, small):
        if small:
            return SMALL_SEGMENT
        return LARGE_SEGMENT if size < LARGE else up(size, SEGMENT_ROUND)

    def allocate(self, requested, new_segment):
        size = up(requested, ROUND)
        small = size <= SMALL
        found = self.find(size, small)
        assert (found is None) == (new_segment is not None), f"a segment for {requested} bytes?"
        if found is None:
            address, given = new_segment
            assert given == self.segment_size(size, small), f"a segment of {given} bytes for {requested}"
            part = [address, given, True]
            segment = [address, small, [part]]
            self.segments.append(segment)
            self.reserved += given
            self.peak_reserved = max(self.peak_reserved, self.reserved)
        else:
            segment, part = found[2], found[3]
        rest = part[1] - size
        if rest >= ROUND if small else rest > UNSPLIT:
            place = segment[2].index(part)
            segment[2].insert(place + 1, [part[0] + size, rest, True])
            part[1] = size
        part[2] = False
        self.allocated += part[1]
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return part[0]

    def give_back(self, address):
        """Before a new segment, if the device has no more memory: segments without a tensor."""
        for segment in self.segments:
            if segment[0] == address:
                assert all(part[2] for part in segment[2]), "a segment with tensors is given back"
                self.segments.remove(segment)
                self.reserved -= sum(part[1] for part in segment[2])
                return
        raise AssertionError(f"there is no segment at {address}")

    def free(self, address):
        for segment in self.segments:
            for part in segment[2]:
                if part[0] == address and not part[2]:
                    self.allocated -= part[1]
                    part[2] = True
                    joined = []
                    for each in segment[2]:
                        if joined and joined[-1][2] and each[2]:
                            joined[-1][1] += each[1]
                        else:
                            joined.append(each)
                    segment[2] = joined
                    return
        raise AssertionError(f"{address} is not allocated")


def main():
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    for device, events in enumerate(snapshot["device_traces"]):
        twin, segment, count, stalls, is_giving = Twin(), None, 0, 0, False
        live = {}
        for event in events:
            address, size = event["addr"], event["size"]
            if event["action"] == "segment_free":
                twin.give_back(address)
                stalls += not is_giving
            elif event["action"] == "segment_alloc":
                assert not is_giving or all(not part[2] for held in twin.segments for part in held[2][:1]
                                            if len(held[2]) == 1), "unused segments are kept"
                segment = (address, size)
            elif event["action"] == "alloc":
                assert twin.allocate(size, segment) == address, f"event {count}: another place"
                live[address], segment = size, None
            elif event["action"] == "free_completed":
                assert live.pop(address) == size
                twin.free(address)
            is_giving = event["action"] == "segment_free"
            count += 1
        blocks = {}
        for held in snapshot["segments"]:
            if held["device"] != device:
                continue
            address = held["address"]
            for block in held["blocks"]:
                if block["state"] == "active_allocated":
                    blocks[address] = block["requested_size"]
                address += block["size"]
            assert address == held["address"] + held["total_size"]
        assert blocks == live, "the segments at the end hold what is live"
        assert sum(held["total_size"] for held in snapshot["segments"] if held["device"] == device) == twin.reserved
        print(f"device {device}: {count} events agree, allocated {twin.peak_allocated}, reserved {twin.peak_reserved}, "
              f"segments given back {stalls} times")


main()
