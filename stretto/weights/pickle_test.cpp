#include "stretto/weights/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::weights {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const std::string& text) {
  return "X"s + static_cast<char>(text.size()) + "\0\0\0"s + text;
}

// A tensor of `size` float32 elements, as torch.save writes it; sizes below 128.
std::string tensor_of(const std::string& shape, const std::string& strides, char size, char offset = 0) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text_of("storage") + "ctorch\nFloatStorage\n" +
         text_of("7") + text_of("cpu") + "K"s + size + "tQK"s + offset + shape + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

std::string state_dict(const std::string& items) {
  return "\x80\x02"
         "ccollections\nOrderedDict\n)R(" +
         items + "u.";
}

const std::string two_by_three = "K\2K\3\x86"s, strides_of_rows = "K\3K\1\x86"s;

std::string error_of(const std::string& pickle) {
  return message_of<DataError>([&] { read_pickled_tensors(pickle, "model.bin"); });
}

TEST(Pickle, ReadsTheTensorsOfAStateDict) {
  const auto tensors =
      read_pickled_tensors(state_dict(text_of("a") + tensor_of(two_by_three, strides_of_rows, 7, 1) +
                                      text_of("b") + tensor_of(")", ")", 1)),
                           "model.bin");
  ASSERT_EQ(tensors.size(), 2U);
  const PickledTensor& a = tensors.at("a");
  EXPECT_EQ(a.storage, "7");
  EXPECT_EQ(a.dtype, "F32");
  EXPECT_EQ(a.storage_size, 7);
  EXPECT_EQ(a.offset, 1);
  EXPECT_THAT(a.shape, ElementsAre(2, 3));
  EXPECT_THAT(a.strides, ElementsAre(3, 1));
  EXPECT_TRUE(tensors.at("b").shape.empty());
}

TEST(Pickle, ReferencesToCodeAreRefused) {
  EXPECT_THAT(error_of("\x80\x02"
                       "cos\nsystem\n(" +
                       text_of("true") + "tR."),
              has_all("model.bin: data.pkl, byte 2: ", "\"os.system\"", "could run code"));
  EXPECT_THAT(error_of("\x80\x04" + text_of("builtins") + text_of("eval") + "\x93" + text_of("1") + "\x85R."),
              HasSubstr("\"builtins.eval\""));
  EXPECT_THAT(error_of("ctorch\nFloatStorage\n)R."),
              HasSubstr("\"torch.FloatStorage\" is called as a function"));
  // Opcodes that construct objects of any class.
  EXPECT_THAT(error_of("(ios\nsystem\n."), HasSubstr("opcode 0x69"));
  EXPECT_THAT(error_of("\x80\x02)\x81."), HasSubstr("opcode 0x81"));
}

TEST(Pickle, TextsAreUtf8) {
  const std::string tensor = tensor_of(two_by_three, strides_of_rows, 6);
  EXPECT_EQ(error_of(state_dict(text_of("\u00e9") + tensor)), "no error");
  EXPECT_THAT(error_of(state_dict(text_of("\xff") + tensor)),
              HasSubstr("model.bin: data.pkl, byte 30: a text that is not UTF-8"));
  EXPECT_THAT(error_of("\x80\x02"
                       "co\xffs\nsystem\n."),
              HasSubstr("a text that is not UTF-8"));
}

TEST(Pickle, TensorsLieWithinTheirStorage) {
  const auto error = [](const std::string& tensor) { return error_of(state_dict(text_of("a") + tensor)); };
  EXPECT_EQ(error(tensor_of(two_by_three, strides_of_rows, 6)), "no error");
  EXPECT_THAT(error(tensor_of(two_by_three, strides_of_rows, 6, 1)),
              has_all("6 elements from element 1 on", "not lie within its storage of 6"));
  EXPECT_THAT(error(tensor_of(two_by_three, "K\4K\1\x86", 6)), HasSubstr("does not lie within"));
  // A tensor expanded from one element to many.
  EXPECT_THAT(error(tensor_of("J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", "K\0K\0\x86"s, 6)),
              HasSubstr("does not lie within"));
  EXPECT_THAT(error(tensor_of("J\xff\xff\xff\xff\x85", "K\1\x85", 6)), HasSubstr("is not a number from 0"));
  EXPECT_THAT(error(tensor_of(two_by_three, "K\1\x85", 6)), HasSubstr("shape and strides do not fit"));
}

TEST(Pickle, OtherObjectsAreNamed) {
  EXPECT_THAT(error_of(state_dict(text_of("step") + "K\5")),
              HasSubstr("\"step\" is not a tensor; expected a state_dict"));
  EXPECT_THAT(error_of("\x80\x02]."), HasSubstr("expected a dictionary of tensors at the end"));
  EXPECT_THAT(error_of(""), HasSubstr("byte 0: the pickle ends here"));
  const std::string whole = state_dict(text_of("a") + tensor_of(two_by_three, strides_of_rows, 6));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_of(whole.substr(0, size)), "no error") << size;
  EXPECT_THAT(error_of("]q\1h\1a0."), HasSubstr("opcode 0x30"));  // a list inside itself
}

}  // namespace
}  // namespace stretto::weights
