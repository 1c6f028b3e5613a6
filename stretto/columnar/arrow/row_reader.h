#pragma once

#include <functional>
#include <memory>
#include <string>

#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>

namespace parquet::arrow {
class FileReader;
}

namespace stretto::columnar {

// Reads the rows of a Parquet file, or of an IPC file or stream.
class RowReader {
 public:
  RowReader();
  ~RowReader();

  // `column`: the only one to read; all of them are read if it is null or if there is none of this name.
  arrow::Status open(const std::string& path, const char* column);

  // Replaces `lines` by the next rows as JSON Lines, about 1 MiB; by nothing after the last one.
  arrow::Status read(std::string& lines);

  double progress() const;

 private:
  arrow::Status open_parquet(const char* column);
  arrow::Status open_file();
  arrow::Status open_stream();

  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::unique_ptr<parquet::arrow::FileReader> parquet_;
  std::function<arrow::Result<std::shared_ptr<arrow::RecordBatch>>()> next_batch_;  // null at the end
  std::string column_;                                                              // "": all
  std::shared_ptr<arrow::RecordBatch> batch_;
  int64_t row_ = 0;  // of the batch, that is read next
  int64_t rows_read_ = 0, rows_ = 0, bytes_ = 0;
};

}  // namespace stretto::columnar
