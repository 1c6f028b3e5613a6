#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "stretto/base/new_folder.h"
#include "stretto/checkpoint_format/run_lock.h"
#include "stretto/compat/hf_script.h"

namespace stretto::cli {

// Whether a new run replaces that in --output_dir. A finished run of a script is replaced only with --overwrite_output_dir, as
// there; an interrupted one is continued. Throws ConfigError.
bool replaces_earlier_run(const compat::ScriptPlan& plan);

// An earlier run of a script in --output_dir, which stands aside while a new one starts, and then is kept as
// previous-1/, previous-2/ and so on. If the new one is refused before its first step, everything is as it
// was.
class EarlierRun {
 public:
  // Completes what a command that was killed has left.
  explicit EarlierRun(const compat::ScriptPlan& plan);

  // Writes the new recipe; `replaced`: the run in the folder makes room. The run folder is locked from here on.
  void begin(bool replaced);
  // The new run was refused.
  void restore();
  // The new run has begun.
  void keep();

 private:
  bool new_run_has_begun() const;
  void bring_back();

  const compat::ScriptPlan& plan_;
  std::filesystem::path run_, aside_, recipe_, done_, done_aside_;
  std::optional<std::string> earlier_recipe_;
  std::optional<NewFolder> made_;  // --output_dir
  std::optional<checkpoint_format::RunLock> lock_;
};

}  // namespace stretto::cli
