#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stretto::weights {

// Reads the records of a zip archive of torch.save (format: PKWARE's APPNOTE.TXT): all are in one folder and
// not compressed. Returns views of `content` by the names in this folder. Every offset and size is checked,
// but not checksums, which torch.save may omit. Throws DataError with `name` for an archive that is
// truncated, damaged or of another kind.
std::map<std::string, std::string_view> zip_records(std::string_view content, const std::string& name);

}  // namespace stretto::weights
