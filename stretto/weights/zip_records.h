#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stretto::weights {

// The records of a zip archive as torch.save writes it (format: PKWARE's APPNOTE.TXT): all in one folder, not
// compressed. Returns views of `content` by the names in this folder. Every offset and size is checked.
// Checksums are not: torch.save may leave them out. Throws DataError with `name` for an archive that is cut
// short, damaged or of another kind.
std::map<std::string, std::string_view> zip_records(std::string_view content, const std::string& name);

}  // namespace stretto::weights
