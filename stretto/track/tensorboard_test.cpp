#include "stretto/track/tensorboard.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/track/tfevents.h"

namespace stretto::track {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

// The expected bytes were made with TensorBoard 2.21's protocol buffers and checksum:
//   Event(wall_time=1700000000.25, file_version="brain.Event:2"), and so on, SerializeToString, masked_crc32c
TEST(TfEvents, EqualTensorBoardsBytes) {
  const double time = 1700000000.25;
  EXPECT_EQ(hex(tfevents::as_record(tfevents::version(time))),
            "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9");
  EXPECT_EQ(hex(tfevents::as_record(tfevents::restart(time, 301))),
            "100000000000000095fbfe180900001040fc54d94110ad023a020801cb79b93b");
  EXPECT_EQ(
      hex(tfevents::as_record(tfevents::scalars(time, 300, {{"train/loss", 0.25}, {"eval/f1", -1e-30}}))),
      "31000000000000009d8383e90900001040fc54d94110ac022a230a110a0a747261696e2f6c6f7373150000803e0a0e0a076576616c2f6631156042a28d56ceb3be");
  EXPECT_EQ(
      hex(tfevents::as_record(tfevents::text(time, 300, "recipe", "a: 1\n"))),
      "420000000000000079f36eaa0900001040fc54d94110ac022a340a320a137265636970652f746578745f73756d6d617279420f08071204120208014205613a20310a4a0a0a060a04746578742002ae5b0ad7");
}

// The expected bytes were made with the messages of tensorboard.plugins.hparams.
TEST(TfEvents, HistogramsAndHyperparametersEqualTensorBoardsBytes) {
  const double time = 1700000000.25;
  EXPECT_EQ(
      hex(tfevents::histogram(time, 300, "w", {-1, 2, 3, 1.5, 5.25, {0.5, 2}, {1, 2}})),
      "0900001040fc54d94110ac022a580a560a01772a5109000000000000f0bf11000000000000004019000000000000084021000000000000f83f2900000000000015403210000000000000e03f00000000000000403a10000000000000f03f0000000000000040");
  const nlohmann::json parameters = {{"b", true}, {"lr", 0.5}, {"t", "x"}, {"unset", nullptr}};
  EXPECT_EQ(
      hex(tfevents::hparams(time, parameters, {"train/loss"})),
      "0900001040fc54d9412a580a560a145f68706172616d735f2f6578706572696d656e744a3e0a3c0a0768706172616d731231122f1900001040fc54d94122050a0162200222060a026c72200322050a017420012a0e0a0c120a747261696e2f6c6f7373");
  EXPECT_EQ(
      hex(tfevents::hparams_start(time, {{"lr", 0.5}})),
      "0900001040fc54d9412a4b0a490a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f4a290a270a0768706172616d73121c1a1a0a0f0a026c72120911000000000000e03f2900001040fc54d941");
  EXPECT_EQ(
      hex(tfevents::hparams_end(time, true)),
      "0900001040fc54d9412a3a0a380a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f4a1a0a180a0768706172616d73120d220b08011100001040fc54d941");
}

TEST(TfEvents, ImagesHaveTheSizeOfThePng) {
  // 2 x 1 pixels, red and blue.
  const std::string digits =
      "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd00000012494441547801010700f8ff00ff00000000ff070001ff5536bac70000000049454e44ae426082";
  std::string png;
  for (size_t i = 0; i < digits.size(); i += 2)
    png += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  // height 1, width 2, colour space 3 (RGB), then the file
  EXPECT_THAT(hex(tfevents::image(1, 300, "i", {png})),
              HasSubstr("08011002180322" + fmt::format("{:02x}", png.size()) + digits));
  EXPECT_THROW(tfevents::image(1, 300, "i", {png.substr(0, 25)}), IoError);
  EXPECT_THROW(tfevents::image(1, 300, "i", {"GIF89a"}), IoError);
}

std::vector<std::string> file_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(TensorBoard, AResumedRunWritesALaterFile) {
  const TempFolder folder;
  const std::filesystem::path events = folder.path() / "tensorboard";
  TensorBoard(events).begin({0, 9, "lr: 1\n"});
  const auto first = file_names(events);
  TensorBoard(events).begin({4, 9, "lr: 2\n"});
  TensorBoard(events).begin({6, 9, "lr: 3\n"});
  const auto files = file_names(events);
  ASSERT_THAT(files, SizeIs(3));
  EXPECT_EQ(files[0], first[0]) << "TensorBoard reads files in the order of their names";
  EXPECT_THAT(read_file(events / files[1]), HasSubstr("lr: 2"));
  EXPECT_THAT(read_file(events / files[2]), HasSubstr("lr: 3"));
}

TEST(TensorBoard, ANewRunRemovesTheOldFiles) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "notes.txt", "notes");
  TensorBoard(folder.path()).begin({0, 9, "lr: 1\n"});
  TensorBoard(folder.path()).begin({0, 9, "lr: 2\n"});
  const auto files = file_names(folder.path());
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_THAT(read_file(folder.path() / files[0]), HasSubstr("lr: 2"));
  EXPECT_EQ(files[1], "notes.txt");
}

}  // namespace
}  // namespace stretto::track
