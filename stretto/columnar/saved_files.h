#pragma once

#include <filesystem>
#include <vector>

namespace stretto::columnar {

// The Arrow files of a folder that save_to_disk of Hugging Face's datasets wrote, in their order; none:
// another folder. Throws DataError for a folder of several splits and for a damaged state.json.
std::vector<std::filesystem::path> saved_files(const std::filesystem::path& folder);

}  // namespace stretto::columnar
