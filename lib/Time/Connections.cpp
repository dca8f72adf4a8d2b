//===- Connections.cpp - who communicates with whom -----------------------===//
#include "Connections.h"

using namespace stage;

unsigned Connections::findChannel(unsigned classNumber, const Task &task, const RankSlot &slot, uint64_t peerRank) {
  unsigned peer = classes.find(int64_t(peerRank) - program.firstRank);
  bool isSend = task.kind == TaskKind::Send;
  // Along an axis of which all ranks are one class: to which neighbour, as the sender counts.
  AxisId axis = 0;
  int64_t shift = 0;
  if (slot.kind == RankSlot::Kind::Neighbour) {
    axis = slot.axis;
    shift = isSend ? slot.shift : program.graph->mesh[axis].size - slot.shift;
  }
  unsigned sender = isSend ? classNumber : peer, receiver = isSend ? peer : classNumber;
  auto [known, isNew] = channelNumbers.try_emplace({sender, receiver, axis, shift}, unsigned(channels.size()));
  if (isNew)
    channels.push_back({sender, receiver});
  return known->second;
}

unsigned Connections::findMeeting(unsigned classNumber, const Task &task, const RankSlot &slot, uint64_t group) {
  auto [number, isNew] = meetingNumbers.try_emplace({group, task.stream}, unsigned(meetings.size()));
  if (isNew) {
    const GroupKind &kind = groups.getKind(slot.groupKind);
    RankClasses::GroupSize size = classes.getGroupSize(kind);
    GroupPlace place = machine.getBlockSizes().empty()
                           ? GroupPlace(size.members)
                           : machine.findPlace(classes.listMembers(kind, classes.getRepresentative(classNumber)));
    meetings.push_back({size.classes, std::move(place)});
  }
  return number->second;
}
