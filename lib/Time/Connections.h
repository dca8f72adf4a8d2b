//===- Connections.h - who communicates with whom --------------*- C++ -*-===//
//
// Classes of ranks send each other messages and run collectives together. Both are numbered here: *channels* from a
// class to another one, and *meetings*, where the members of a group come together for the collectives of a stream.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_CONNECTIONS_H
#define STAGE_LIB_TIME_CONNECTIONS_H

#include "stage/Tasks/OpCosts.h"
#include "stage/Time/RankClasses.h"
#include "stage/Time/TimedPart.h"
#include <map>

namespace stage {

/// What the classes of a program have in common.
class Connections {
public:
  explicit Connections(const TimedPart &part)
      : program(*part.program), groups(program), classes(program, part.machine.getBlockSizes(), /*apart=*/false),
        machine(part.machine), kernels(part.kernels.get()), costs(*part.program->graph) {}

  struct Channel {
    unsigned sender, receiver;
  };
  /// Where the members of a group come together for the collectives of a stream, one after the other.
  struct Meeting {
    unsigned expected; ///< Classes.
    GroupPlace place;
  };

  /// Messages of a class and its peer, of an op that shifts along an axis or of others.
  unsigned findChannel(unsigned classNumber, bool isSent, const RankSlot &slot, uint64_t peer);
  unsigned findMeeting(unsigned classNumber, const Task &task, const RankSlot &slot, uint64_t group);
  /// Any group of a kind that a class is in.
  const Meeting &getGroup(unsigned classNumber, unsigned kind);
  const Channel &getChannel(unsigned number) const { return channels[number]; }
  const Meeting &getMeeting(unsigned number) const { return meetings[number]; }
  size_t getNumMeetings() const { return meetings.size(); }

  const Program &program;
  const GroupTable groups;
  const RankClasses classes;
  const Machine &machine;
  const Kernels *const kernels;
  OpCosts costs;

private:
  std::map<std::pair<unsigned, unsigned>, Meeting> kinds;           ///< By class and kind of group.
  std::map<std::pair<uint64_t, uint64_t>, unsigned> meetingNumbers; ///< By group and stream.
  std::vector<Meeting> meetings;
  /// By sender, receiver, and neighbour along an axis.
  std::map<std::tuple<unsigned, unsigned, AxisId, int64_t>, unsigned> channelNumbers;
  std::vector<Channel> channels;
};

} // namespace stage

#endif // STAGE_LIB_TIME_CONNECTIONS_H
