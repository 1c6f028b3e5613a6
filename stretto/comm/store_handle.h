#pragma once

#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "stretto/cluster/flight_recorder.h"

namespace stretto {

// The rendezvous of a group, and values shared by its members.
struct StoreHandle {
  c10::intrusive_ptr<c10d::Store> store;
  std::string path = {};  // identifies the group among the job's groups; equal on its members only
  std::shared_ptr<cluster::FlightRecorder> recorder = {};  // read by the launcher; null without one
  bool compare_calls = false;                              // GroupOptions::compare_calls for every group
};

}  // namespace stretto
