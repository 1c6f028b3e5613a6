#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "stretto/base/new_folder.h"
#include "stretto/checkpoint_format/run_lock.h"
#include "stretto/compat/hf_script.h"

namespace stretto::cli {

// Whether a new run replaces the one in --output_dir. As with the scripts, a finished run is replaced only
// with --overwrite_output_dir; an interrupted one is resumed. Throws ConfigError.
bool replaces_earlier_run(const compat::ScriptPlan& plan);

// An earlier run of a script in --output_dir. It is moved aside while a new run starts, and then kept as
// previous-1/, previous-2/ and so on. If the new run is refused before its first step, the earlier one is
// restored.
class EarlierRun {
 public:
  // Completes an operation that was interrupted because an earlier command was killed.
  explicit EarlierRun(const compat::ScriptPlan& plan);

  // Moves the run in the folder aside if `replaced`, writes the new recipe, and locks the run folder.
  void begin(bool replaced);
  // Restores the earlier run, and removes the parts of a split file that the new run wrote: it was refused.
  void restore();
  // restore(), and logs how to see the recipe of the flags.
  void restore_and_explain();
  // Keeps the earlier run as previous-N: the new run has begun.
  void keep();

 private:
  bool new_run_has_begun() const;
  void restore_files();

  const compat::ScriptPlan& plan_;
  std::filesystem::path run_, backup_, recipe_, done_, done_backup_;
  std::optional<std::string> earlier_recipe_;
  // --output_dir, and the folder of the parts of a split file
  std::optional<NewFolder> made_, made_for_parts_;
  std::optional<checkpoint_format::RunLock> lock_;
};

}  // namespace stretto::cli
