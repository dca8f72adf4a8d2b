//===- ExchangeRelays.h - ops between two exchanges of tokens -------------===//
#ifndef STAGE_LIB_TRANSFORMS_EXCHANGERELAYS_H
#define STAGE_LIB_TRANSFORMS_EXCHANGERELAYS_H

namespace stage {
class Graph;

/// Where tokens reach experts in two steps on streams of their own, what stands between both steps has a stream, too.
/// Streams of communication must be decided.
void moveRelays(Graph &graph);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_EXCHANGERELAYS_H
