//go:build s3

package blob

import _ "gocloud.dev/blob/s3blob" // the driver of s3:// URLs
