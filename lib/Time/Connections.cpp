//===- Connections.cpp - who communicates with whom -----------------------===//
#include "Connections.h"

using namespace stage;

unsigned Connections::findChannel(unsigned classNumber, bool isSent, const RankSlot &slot, uint64_t peerRank) {
  unsigned peer = classes.find(int64_t(peerRank) - program.firstRank);
  // Along an axis of which all ranks are one class: to which neighbour, as the sender counts.
  AxisId axis = 0;
  int64_t shift = 0;
  if (slot.kind == RankSlot::Kind::Neighbour) {
    axis = slot.axis;
    shift = isSent ? slot.shift : program.graph->mesh[axis].size - slot.shift;
  }
  unsigned sender = isSent ? classNumber : peer, receiver = isSent ? peer : classNumber;
  auto [known, isNew] = channelNumbers.try_emplace({sender, receiver, axis, shift}, unsigned(channels.size()));
  if (isNew)
    channels.push_back({sender, receiver});
  return known->second;
}

const Connections::Meeting &Connections::getGroup(unsigned classNumber, unsigned number) {
  auto known = kinds.find({classNumber, number});
  if (known != kinds.end())
    return known->second;
  const GroupKind &kind = groups.getKind(number);
  RankClasses::GroupSize size = classes.getGroupSize(kind);
  GroupPlace place = machine.getBlockSizes().empty()
                         ? GroupPlace(size.members)
                         : machine.findPlace(classes.listMembers(kind, classes.getRepresentative(classNumber)));
  return kinds.emplace(std::pair(classNumber, number), Meeting{size.classes, std::move(place)}).first->second;
}

unsigned Connections::findMeeting(unsigned classNumber, const Task &task, const RankSlot &slot, uint64_t group) {
  auto [number, isNew] = meetingNumbers.try_emplace({group, task.stream}, unsigned(meetings.size()));
  if (isNew)
    meetings.push_back(getGroup(classNumber, slot.groupKind));
  return number->second;
}
