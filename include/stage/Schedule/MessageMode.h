//===- MessageMode.h - when messages between stages leave ------*- C++ -*-===//
//
// Problem: frameworks differ in when a stage sends, and in what it does until the message has arrived. A unit of two
// computations, dx and dw, sends what dx makes, and the next unit begins with F:
//
//   AtEnd      compute  | dx | dw | F ...              send = at_end, messages = free
//              send               |----->
//   Early      compute  | dx | dw | F ...              send = early
//              send          |----->
//   Blocking   compute  | dx | dw | wait | F ...       messages = blocking
//              send               |----->
//
// A strategy says the mode, and no machine: the wait is a node of the traces for every machine (law L15). It is a task
// of the sender alone and waits for no send, so that no computation ever waits for one (law L13).
//
// Representation: one mode and not two flags, because what leaves early cannot block. The program says of each send
// whether it blocks (ProgramItem), tasks have a Compute task more behind each such send (Task::isWait), and all that
// counts, orders, encodes, taxes or times compute takes it for what it is, without a kind of its own.
//
// Limits: messages between stages of one pipeline. Those of permutes and those between parts of a workload are free.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_MESSAGEMODE_H
#define STAGE_SCHEDULE_MESSAGEMODE_H

#include <cstdint>

namespace stage {

enum class MessageMode : uint8_t {
  AtEnd,    ///< When all of the unit is computed.
  Early,    ///< As soon as the value is made, ahead of what else the unit computes.
  Blocking, ///< At the end; the sender computes nothing until the message has had its time.
};

} // namespace stage

#endif // STAGE_SCHEDULE_MESSAGEMODE_H
